# SPDX-License-Identifier: Apache-2.0
"""Every field of the spec, and how a change of it reaches a running service: none is left without an answer.

| effect | meaning |
|---|---|
| rollout | running pods are replaced one by one |
| pod | pods made from now on differ |
| children | another child object is applied anew |
| count | pods are made or drained |
| policy | none of these: decisions read it at every tick |
"""

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from gearshift.api import names
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.manifests.children import build_children
from gearshift.operator.manifests.meta import Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.manifests.revision import revision
from gearshift.policy.targets import role_targets
from tests.unit.operator.builders import INSTALLATION

Json = dict[str, Any]
BASE: Json = {
    "model": {"uri": "hf://org/llama"},
    "engine": {"kind": "Simulated"},
    "parallelism": {"layouts": ["TP", "Shift"], "shiftThresholdTokens": 512},
    "roles": [{"name": "Unified", "replicas": 2, "min": 1, "max": 4}],
}
UNTIL = "2030-01-01T00:00:00Z"
REF = {"name": "hub", "key": "token"}


def role(**fields: Any) -> Json:
    """The one role of the base, changed."""
    return {"roles": [{**BASE["roles"][0], **fields}]}


def parallelism(**fields: Any) -> Json:
    """The parallelism of the base, changed."""
    return {"parallelism": {**BASE["parallelism"], **fields}}


def engine(**fields: Any) -> Json:
    """The engine of the base, changed."""
    return {"engine": {**BASE["engine"], **fields}}


def env(**fields: Any) -> Json:
    """One environment variable of the engine."""
    return engine(env=[{"name": "A", **fields}])


def queries(**fields: Any) -> Json:
    """One query of the user."""
    return {"policy": {"queries": [{"signal": "Waiting", "query": "sum(a)", **fields}]}}


ROLLOUT = {"rollout", "pod"}
POLICY: set[str] = set()
SPLIT = [{"name": "Prefill"}, {"name": "Decode"}]

TABLE: dict[str, tuple[Json, set[str]]] = {
    "model.uri": ({"model": {"uri": "hf://other/llama"}}, ROLLOUT),
    "model.revision": ({"model": {"uri": "hf://org/llama", "revision": "v2"}}, ROLLOUT),
    "model.servedName": ({"model": {"uri": "hf://org/llama", "servedName": "x"}}, ROLLOUT | {"children"}),
    "engine.kind": (engine(kind="VLLM"), ROLLOUT),
    "engine.device": (engine(device="CPU"), ROLLOUT),
    "engine.image": (engine(image="mine:1"), ROLLOUT),
    "engine.args": (engine(args=["--seed=7"]), ROLLOUT),
    "engine.env.name": (engine(env=[{"name": "B", "value": "1"}]), ROLLOUT),
    "engine.env.value": (env(value="2"), ROLLOUT),
    "engine.env.valueFrom.secretKeyRef.name": (env(valueFrom={"secretKeyRef": REF | {"name": "a"}}), ROLLOUT),
    "engine.env.valueFrom.secretKeyRef.key": (env(valueFrom={"secretKeyRef": REF | {"key": "a"}}), ROLLOUT),
    "engine.env.valueFrom.configMapKeyRef.name": (env(valueFrom={"configMapKeyRef": REF | {"name": "a"}}), ROLLOUT),
    "engine.env.valueFrom.configMapKeyRef.key": (env(valueFrom={"configMapKeyRef": REF | {"key": "a"}}), ROLLOUT),
    "pod.accelerators": ({"pod": {"accelerators": 4}}, ROLLOUT),
    "pod.template": ({"pod": {"template": {"metadata": {"labels": {"team": "a"}}}}}, ROLLOUT),
    "parallelism.layouts": (parallelism(layouts=["TP", "Shift", "DP"]), ROLLOUT),
    "parallelism.initial": (parallelism(initial="Shift"), {"pod"}),
    "parallelism.sequenceParallelSize": (parallelism(sequenceParallelSize=2), ROLLOUT),
    "parallelism.shiftThresholdTokens": (parallelism(shiftThresholdTokens=64), {"pod"}),
    "replicas": ({"replicas": 3}, {"count", "children"}),
    "roles.name": ({"roles": SPLIT}, ROLLOUT | {"count"}),
    "roles.replicas": (role(replicas=3), {"count", "children"}),
    "roles.min": (role(min=2), POLICY),
    "roles.max": (role(max=2), POLICY),
    "scaling.owner": ({"scaling": {"owner": "External"}}, POLICY),
    "scaling.standby": ({"scaling": {"owner": "Gearshift", "standby": 1}}, POLICY),
    "router.replicas": ({"router": {"replicas": 3}}, {"children"}),
    "router.scaling.owner": ({"router": {"scaling": {"owner": "External"}}}, {"children"}),
    "roles.layout": (role(layout="Shift"), POLICY),
    "policy.actuation": ({"policy": {"actuation": "Approve"}}, POLICY),
    "policy.objectives.ttft": ({"policy": {"objectives": {"ttft": "1s"}}}, POLICY),
    "policy.objectives.itl": ({"policy": {"objectives": {"itl": "9ms"}}}, POLICY),
    "policy.window": ({"policy": {"window": "10s"}}, POLICY),
    "policy.dwell": ({"policy": {"dwell": "10s"}}, POLICY),
    "policy.cooldown": ({"policy": {"cooldown": "10s"}}, POLICY),
    "policy.drainTimeout": ({"policy": {"drainTimeout": "10s"}}, {"pod"}),
    "policy.maxTransitionsPerHour": ({"policy": {"maxTransitionsPerHour": 1}}, POLICY),
    "policy.maxAccelerators": ({"policy": {"maxAccelerators": 8}}, POLICY),
    "policy.queries.signal": (queries(signal="Running"), POLICY),
    "policy.queries.scope": (queries(scope="Unified"), POLICY),
    "policy.queries.query": (queries(query="sum(b)"), POLICY),
    "override.layout": ({"override": {"layout": "TP", "until": UNTIL}}, POLICY),
    "override.role": ({"override": {"role": "Unified", "until": UNTIL}}, POLICY),
    "override.until": ({"override": {"layout": "TP", "until": UNTIL}}, POLICY),
}


def leaves(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Paths of all fields, those of nested models and of lists of them included."""
    for name, field in model.model_fields.items():
        where = f"{path}{field.alias or name}"
        nested = [kind for kind in _types(field.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if nested:
            yield from leaves(nested[0], f"{where}.")
        else:
            yield where


def _types(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (list, Union, types.UnionType):
        for part in get_args(annotation):
            yield from _types(part)
    else:
        yield annotation


def parts(fields: Json) -> dict[str, Any]:
    """What a spec makes, by effect."""
    owner = Owner("prod", "chat", "uid-1", InferenceServiceSpec.model_validate({**BASE, **fields}))
    pod = build_pod(owner, INSTALLATION, 0, owner.spec.roles[0].name, owner.spec.parallelism.start)
    del pod["metadata"]["labels"][names.LABEL_REVISION]
    return {
        "rollout": revision(owner.spec),
        "pod": pod,
        "children": build_children(owner, INSTALLATION),
        "count": role_targets(owner.spec),
    }


def test_no_field_is_forgotten() -> None:
    assert sorted(leaves(InferenceServiceSpec)) == sorted(TABLE)


@pytest.mark.parametrize("path", TABLE)
def test_a_change_has_its_effects_and_no_others(path: str) -> None:
    fields, expected = TABLE[path]
    before, after = parts({}), parts(fields)
    assert {effect for effect in before if before[effect] != after[effect]} == expected


def test_what_replaces_running_pods_is_what_their_manifest_says() -> None:
    """A field that changes pods rolls them out, but for those that reach running pods in another way."""
    live = {"parallelism.initial", "parallelism.shiftThresholdTokens", "policy.drainTimeout"}
    late = {path for path, (_, effects) in TABLE.items() if "pod" in effects and "rollout" not in effects}
    assert late == live
