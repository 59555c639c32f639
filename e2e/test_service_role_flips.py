# SPDX-License-Identifier: Apache-2.0
"""Two hundred role flips under load: no request fails and no text changes."""

import urllib.request

import pytest

from gearshift.api import names
from gsstack.load import Load
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

FLIPS = 200
PODS = 4
ROLES = [{"name": "Prefill", "replicas": 2, "min": 0}, {"name": "Decode", "replicas": 2, "min": 0}]
POLICY = {"dwell": "0s", "cooldown": "0s", "window": "5s"}
FOREVER = "2099-01-01T00:00:00Z"
ROUND_SECONDS = 180


def test_flips_lose_nothing(space: Space) -> None:
    service = space.serve("chat", roles=ROLES, policy=POLICY)
    pods = service.uids()
    with Load(service.url(), requests_per_second=4, prompt_tokens=64, output_tokens=8) as load:
        load.wait_for_answers(16)
        flips = 0
        role = "Decode"
        while flips < FLIPS:
            order_role(service, role)
            flips = committed(service)
            role = "Prefill" if role == "Decode" else "Decode"
        load.wait_for_answers(16)
    assert load.failures() == []
    assert {prompt: len(texts) for prompt, texts in load.digests().items()} == dict.fromkeys(range(8), 1)
    assert service.uids() == pods
    assert sum(pod["epoch"] for pod in service.status()["pods"]) == flips


def order_role(service: Service, role: str) -> None:
    """Order all pods into a role; return when they serve in it."""
    service.patch({"override": {"role": role, "until": FOREVER}})
    service.wait_field("{.status.split}", f"{PODS}/0" if role == "Prefill" else f"0/{PODS}", ROUND_SECONDS)


def committed(service: Service) -> int:
    """Role transitions that the pods' sidecars count as committed; none may have ended otherwise."""
    found = [line for pod in service.pods() for line in _metrics(pod["status"]["podIP"]).splitlines()]
    ended = [line for line in found if line.startswith("gearshift_sidecar_transitions_total{")]
    assert [line for line in ended if 'result="Committed"' not in line] == []
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in ended if 'kind="Role"' in line)


def _metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}:{names.PORT_SIDECAR_METRICS}/metrics", timeout=10) as answer:
        return str(answer.read().decode())
