# SPDX-License-Identifier: Apache-2.0
"""The engine pod, field by field."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.errors import ChildRefused
from gearshift.operator.manifests.meta import Manifest
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.manifests.security import API_TOKEN_VOLUME
from tests.unit.operator.builders import INSTALLATION, owner


def pod(**fields: Any) -> Manifest:
    """A prefill pod of a spec."""
    return build_pod(owner(**fields), INSTALLATION, 3, Role.PREFILL, Layout.TP)


def part(manifest: Manifest, name: str) -> Manifest:
    """A container of a pod."""
    found = [*manifest["spec"]["initContainers"], *manifest["spec"]["containers"]]
    return next(entry for entry in found if entry["name"] == name)


def variables(manifest: Manifest, name: str) -> dict[str, str]:
    """Plain environment of a container."""
    return {entry["name"]: entry.get("value", "") for entry in part(manifest, name)["env"]}


def test_name_owner_and_labels_hold_immutable_facts_only() -> None:
    metadata = pod()["metadata"]
    assert metadata["name"] == "chat-3"
    assert metadata["ownerReferences"][0]["uid"] == "uid-1"
    values = set(metadata["labels"].values())
    assert not values & {"Prefill", "TP", "prefill", "tp"}
    assert metadata["labels"][names.LABEL_SERVICE_UID] == "uid-1"


def test_the_sidecar_is_told_role_and_layout() -> None:
    config = PodConfig.model_validate(json.loads(variables(pod(), names.CONTAINER_SIDECAR)[names.ENV_POD_CONFIG]))
    assert (config.initial_role, config.initial_layout, config.service) == (Role.PREFILL, Layout.TP, "chat")
    assert config.router_account == "system:serviceaccount:prod:chat-router"
    assert names.ENV_POD_CONFIG not in variables(pod(), names.CONTAINER_ENGINE)


def test_only_the_sidecar_sees_the_token() -> None:
    holders = [
        entry["name"]
        for entry in (part(pod(), names.CONTAINER_SIDECAR), part(pod(), names.CONTAINER_ENGINE))
        if API_TOKEN_VOLUME in {mount["name"] for mount in entry["volumeMounts"]}
    ]
    assert holders == [names.CONTAINER_SIDECAR]
    assert pod()["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", [names.CONTAINER_SIDECAR, names.CONTAINER_ENGINE])
def test_both_containers_meet_the_restricted_level(name: str) -> None:
    context = part(pod(), name)["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"] is True
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize(
    ("engine", "image", "gpus"),
    [
        ({"kind": "Simulated"}, "example/gearshift:1", None),
        ({"kind": "VLLM"}, "example/vllm:cuda", "8"),
        ({"kind": "VLLM", "image": "mine:2"}, "mine:2", "8"),
        ({"kind": "VLLM", "device": "CPU", "image": "cpu:3"}, "cpu:3", None),
    ],
)
def test_image_and_gpus_by_kind_and_device(engine: dict[str, str], image: str, gpus: str | None) -> None:
    container = part(pod(engine=engine), names.CONTAINER_ENGINE)
    assert container["image"] == image
    assert container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu") == gpus


def test_without_any_engine_image_the_field_is_named() -> None:
    with pytest.raises(ChildRefused, match=r"spec\.engine\.image: needed.*VLLM on CPU"):
        pod(engine={"kind": "VLLM", "device": "CPU"})


@pytest.mark.parametrize(
    ("uri", "path", "claim"),
    [
        ("hf://org/llama", "org/llama", None),
        ("pvc://weights/llama/8b", "/models/llama/8b", "weights"),
        ("pvc://weights", "/models", "weights"),
        ("file:///srv/llama", "/srv/llama", None),
    ],
)
def test_model_path_and_claim_by_uri(uri: str, path: str, claim: str | None) -> None:
    manifest = pod(model={"uri": uri})
    config = json.loads(variables(manifest, names.CONTAINER_SIDECAR)[names.ENV_POD_CONFIG])
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in manifest["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert config["modelPath"] == path
    assert claims == ([] if claim is None else [claim])
    mounts = {mount["mountPath"]: mount.get("readOnly") for mount in part(manifest, "engine")["volumeMounts"]}
    assert mounts.get("/models") is (None if claim is None else True)


def test_a_user_may_move_the_caches_but_not_the_address() -> None:
    env = [{"name": "HF_HOME", "value": "/elsewhere"}, {"name": "POD_IP", "value": "1.2.3.4"}]
    entries = part(pod(engine={"kind": "Simulated", "env": env}), names.CONTAINER_ENGINE)["env"]
    by_name = {entry["name"]: entry for entry in entries}
    assert len(by_name) == len(entries)
    assert by_name["HF_HOME"]["value"] == "/elsewhere"
    assert "valueFrom" in by_name["POD_IP"]


def test_grace_covers_drain_and_both_ends() -> None:
    manifest = pod(policy={"drainTimeout": "90s"})
    assert manifest["spec"]["terminationGracePeriodSeconds"] == 120
    assert part(manifest, "engine")["command"][-2:] == ["--grace-seconds", "105"]


def test_operator_upgrade_changes_no_revision() -> None:
    newer = replace(INSTALLATION, image="example/gearshift:2")
    old = build_pod(owner(), INSTALLATION, 0, Role.UNIFIED, Layout.TP)["metadata"]["labels"][names.LABEL_REVISION]
    new = build_pod(owner(), newer, 0, Role.UNIFIED, Layout.TP)["metadata"]["labels"][names.LABEL_REVISION]
    assert old == new
