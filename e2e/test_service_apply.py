# SPDX-License-Identifier: Apache-2.0
"""From `kubectl apply` to Ready, and everything else that a user does with `kubectl` on the way."""

import json
from typing import Any

import pytest

from gearshift.api import names
from gscluster.kubectl import Kubectl
from gscluster.waiting import wait_for
from gsstack.services import Service, Status
from gsstack.space import Space

pytestmark = pytest.mark.e2e

NAME = "chat"
CHILDREN = {
    f"serviceaccount/{NAME}-engine",
    f"serviceaccount/{NAME}-router",
    f"role.rbac.authorization.k8s.io/{NAME}-router",
    f"rolebinding.rbac.authorization.k8s.io/{NAME}-router",
    f"networkpolicy.networking.k8s.io/{NAME}",
    f"service/{NAME}-pods",
    f"service/{NAME}-router",
    f"poddisruptionbudget.policy/{NAME}",
    f"deployment.apps/{NAME}-router",
    f"pod/{NAME}-0",
    f"pod/{NAME}-1",
}
COLUMNS = ["NAME", "READY", "LAYOUT", "P/D", "REPLICAS", "MODEL", "AGE"]
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


@pytest.mark.usefixtures("metrics")
def test_apply_to_ready(space: Space) -> None:
    manifest = space.simulated(NAME, roles=ROLES)
    kubectl = space.kubectl
    kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=_json(manifest))
    assert not kubectl.succeeds("get", "gsvc", NAME, "-n", space.name), "a dry run made an object"

    service = space.apply(manifest)
    kubectl("wait", "gsvc/chat", "-n", space.name, "--for=condition=Ready", "--timeout=120s", timeout_seconds=130)
    service.wait_settled()

    assert space.objects() >= CHILDREN
    assert set(_owners(kubectl, space.name)) == {service.get()["metadata"]["uid"]}
    _check_columns(kubectl, space.name)
    assert "cooldown" in kubectl("explain", "gsvc.spec.policy").partition("FIELDS:")[2]
    _check_second_apply(space, service, manifest)


def _check_columns(kubectl: Kubectl, namespace: str) -> None:
    header, line = kubectl("get", "gsvc", "-n", namespace).splitlines()
    assert header.split() == COLUMNS
    assert line.split()[:-1] == [NAME, "True", "TP", "1/1", "2", "hf://gearshift/simulated"]
    assert f"{NAME} " in kubectl("get", "gearshift", "-n", namespace), "category `gearshift` lists the service"


def _check_second_apply(space: Space, service: Service, manifest: dict[str, Any]) -> None:
    """The same manifest again: every object of the namespace stays as it is, to its resource version."""
    service.wait_for(_known, "the load and the decision to be known, so that status has nothing more to tell")
    before = _versions(space)
    for _ in range(2):
        space.kubectl.apply_server_side(manifest)
        space.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=_json(manifest))
    seen = service.get()["metadata"]
    assert seen["generation"] == 1
    wait_for(lambda: service.status()["observedGeneration"] == 1, "the operator to have seen it", timeout_seconds=180)
    assert _versions(space) == before


def _known(status: Status) -> bool:
    demands = [status["load"][phase].get("demandTokensPerSecond") for phase in ("prefill", "decode")]
    return None not in demands and status["lastDecision"]["reason"] == "Steady"


def _versions(space: Space) -> dict[str, tuple[str, int | None]]:
    """Object -> resource version and generation, for all that the service consists of."""
    wanted = ",".join(sorted({name.split("/")[0] for name in CHILDREN} | {"inferenceservice"}))
    items = space.kubectl.json("get", wanted, "-n", space.name)["items"]
    return {
        f"{item['kind']}/{item['metadata']['name']}": (
            item["metadata"]["resourceVersion"],
            item["metadata"].get("generation"),
        )
        for item in items
    }


def _owners(kubectl: Kubectl, namespace: str) -> list[str]:
    wanted = ",".join(sorted({name.split("/")[0] for name in CHILDREN}))
    items = kubectl.json("get", wanted, "-n", namespace, "-l", f"{names.LABEL_SERVICE}={NAME}")["items"]
    direct = [item for item in items if item["metadata"]["name"].count("-router-") == 0]
    return [owner["uid"] for item in direct for owner in item["metadata"]["ownerReferences"]]


def _json(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest)
