# SPDX-License-Identifier: Apache-2.0
"""Strategic merge, and what a template may not touch."""

import copy
from typing import Any

import pytest

from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.errors import ChildRefused
from gearshift.operator.manifests.merge import MergeError, merge
from gearshift.operator.manifests.pod import build_pod
from tests.unit.operator.builders import INSTALLATION, owner

BASE: dict[str, Any] = {
    "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "securityContext": {"fsGroup": 1, "runAsUser": 2},
    "tolerations": [{"key": "k"}],
}


@pytest.mark.parametrize(
    ("patch", "field", "result"),
    [
        (
            {"containers": [{"name": "b", "image": "2"}]},
            "containers",
            [BASE["containers"][0], {"name": "b", "image": "2"}],
        ),
        ({"containers": [{"name": "c"}]}, "containers", [*BASE["containers"], {"name": "c"}]),
        ({"containers": [{"name": "b", "$patch": "delete"}]}, "containers", [BASE["containers"][0]]),
        ({"containers": [{"$patch": "replace"}, {"name": "z"}]}, "containers", [{"name": "z"}]),
        ({"securityContext": {"fsGroup": 5}}, "securityContext", {"fsGroup": 5, "runAsUser": 2}),
        ({"securityContext": {"runAsUser": None}}, "securityContext", {"fsGroup": 1}),
        ({"securityContext": {"$patch": "replace", "fsGroup": 9}}, "securityContext", {"fsGroup": 9}),
        ({"tolerations": [{"key": "n"}]}, "tolerations", [{"key": "n"}]),
        ({"nodeSelector": {"a": "b", "c": None}}, "nodeSelector", {"a": "b"}),
    ],
)
def test_merge(patch: dict[str, Any], field: str, result: Any) -> None:
    before = copy.deepcopy(BASE)
    assert merge(BASE, patch)[field] == result
    assert before == BASE


def test_entries_of_entries_are_merged_by_their_keys_too() -> None:
    patch = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "3"}]}]}
    (first, _) = merge(BASE, patch)["containers"]
    assert first["env"] == [{"name": "X", "value": "3"}, {"name": "Y", "value": "2"}]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"containers": [{"image": "x"}]}, r"containers\[0\]: has no name"),
        ({"containers": ["x"]}, r"containers\[0\]: 'x' is not an object"),
        ({"securityContext": 7}, r"securityContext: 7 is not an object"),
        ({"$setElementOrder/containers": []}, "not supported"),
        ({"affinity": {"$patch": "delete"}}, "nothing of that name"),
    ],
)
def test_a_patch_that_can_not_be_merged_is_named(patch: dict[str, Any], words: str) -> None:
    with pytest.raises(MergeError, match=words):
        merge(BASE, patch)


ALLOWED: list[dict[str, Any]] = [
    {"spec": {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"gpu": "h200"}}},
    {"spec": {"containers": [{"name": "engine", "resources": {"limits": {"memory": "1Gi"}}}]}},
    {"spec": {"volumes": [{"name": "mine", "emptyDir": {}}], "hostNetwork": False}},
    {"spec": {"containers": [{"name": "engine", "volumeMounts": [{"name": "mine", "mountPath": "/mine"}]}]}},
    {"spec": {"initContainers": [{"name": "sidecar", "resources": {"requests": {"cpu": "1"}}}]}},
    {"spec": {"containers": [{"name": "helper", "image": "h"}], "runtimeClassName": "nvidia"}},
    {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}},
    {},
]


@pytest.mark.parametrize("template", ALLOWED)
def test_a_template_may(template: dict[str, Any]) -> None:
    build_pod(owner(pod={"template": template}), INSTALLATION, 0, Role.UNIFIED, Layout.TP)


FORBIDDEN: list[tuple[dict[str, Any], str]] = [
    ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy"),
    ({"spec": {"serviceAccountName": "root"}}, "spec.serviceAccountName"),
    ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken"),
    ({"spec": {"terminationGracePeriodSeconds": 1}}, "spec.terminationGracePeriodSeconds"),
    ({"spec": {"containers": [{"name": "engine", "image": "x"}]}}, "containers[engine].image"),
    ({"spec": {"containers": [{"name": "engine", "args": ["x"]}]}}, "containers[engine].args"),
    ({"spec": {"containers": [{"name": "engine", "$patch": "delete"}]}}, "containers[engine]: can't be removed"),
    ({"spec": {"containers": [{"name": "engine", "lifecycle": {"preStop": {}}}]}}, "containers[engine].lifecycle"),
    ({"spec": {"initContainers": [{"name": "sidecar", "command": ["x"]}]}}, "initContainers[sidecar].command"),
    ({"spec": {"initContainers": [{"name": "sidecar", "env": [{"name": "POD_IP", "value": "1"}]}]}}, "env[POD_IP]"),
    ({"spec": {"volumes": [{"name": "gearshift-run", "hostPath": {"path": "/"}}]}}, "volumes[gearshift-run]"),
    (
        {
            "spec": {
                "containers": [{"name": "engine", "volumeMounts": [{"name": "gearshift-api-token", "mountPath": "/t"}]}]
            }
        },
        "gearshift-api-token belongs to the sidecar",
    ),
    (
        {"spec": {"containers": [{"name": "x", "volumeMounts": [{"name": "gearshift-api-token", "mountPath": "/t"}]}]}},
        "containers[x].volumeMounts",
    ),
    ({"metadata": {"labels": {"gearshift.dev/service-uid": "other"}}}, "labels[gearshift.dev/service-uid]"),
    ({"metadata": {"ownerReferences": []}}, "metadata.ownerReferences"),
    ({"status": {}}, "spec.pod.template.status"),
]


@pytest.mark.parametrize(("template", "words"), FORBIDDEN)
def test_a_template_may_not(template: dict[str, Any], words: str) -> None:
    with pytest.raises(ChildRefused) as caught:
        build_pod(owner(pod={"template": template}), INSTALLATION, 0, Role.UNIFIED, Layout.TP)
    assert caught.value.reason == "TemplateRefused"
    assert words in caught.value.message
