# SPDX-License-Identifier: Apache-2.0
"""Specs that change, and specs that can't be served."""

import json
from typing import Any

import pytest

from gearshift.api import names
from tests.functional.operator.world import Space, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

TWO = {"roles": [{"name": "Unified", "replicas": 2}]}
REVISION = names.LABEL_REVISION


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"spec": {"enableServiceLinks": True}}, "spec.enableServiceLinks: is set by the operator"),
        ({"spec": {"containers": [{"name": "engine", "command": ["sh"]}]}}, "containers[engine].command: is set"),
        ({"spec": {"containers": [{"image": "x"}]}}, "containers[0]: has no name"),
        ({"spec": {"tolerations": [{"operator": "Sometimes"}]}}, "Sometimes"),
        ({"spec": {"containers": [{"name": "engine", "resources": {"limits": {"cpu": "many"}}}]}}, "quantities"),
        ({"metadata": {"name": "other"}}, "metadata.name: only labels and annotations"),
    ],
)
def test_a_bad_template_is_named_and_nothing_that_serves_is_touched(space: Space, template: Any, words: str) -> None:
    space.apply(**TWO)
    space.serve(2)
    before = space.uids()
    space.apply(**TWO, pod={"template": template})
    until(lambda: space.condition("SpecValid").get("status") == "False", "SpecValid to be False")
    assert words in space.condition("SpecValid")["message"]
    assert space.condition("Stalled")["status"] == "True"
    assert space.condition("Reconciling")["status"] == "False"
    assert space.status()["observedGeneration"] == space.get("gsvc", "chat")["metadata"]["generation"]
    assert space.uids() == before
    space.apply(**TWO, pod={"template": {}})
    until(lambda: space.is_true("Ready"), "the service to recover")
    assert space.uids() == before


def test_a_bad_query_is_named_and_nothing_that_serves_is_touched(space: Space) -> None:
    space.apply(**TWO)
    space.serve(2)
    before = space.uids()
    query = 'sum(rate(requests_total{namespace="kube-system"}[1m]))'
    space.apply(**TWO, policy={"queries": [{"signal": "RequestRate", "query": query}]})
    until(lambda: space.condition("SpecValid").get("status") == "False", "SpecValid to be False")
    words = 'spec.policy.queries[0].query: matcher namespace="kube-system" is not allowed: only namespace '
    assert words + repr(space.name) in space.condition("SpecValid")["message"]
    assert f"got {query!r}" in space.condition("SpecValid")["message"]
    assert space.condition("Stalled")["status"] == "True"
    assert space.condition("Reconciling")["status"] == "False"
    assert space.uids() == before
    good = query.replace("kube-system", "$namespace")
    space.apply(**TWO, policy={"queries": [{"signal": "RequestRate", "query": good}]})
    until(lambda: space.is_true("Ready") and space.is_true("SpecValid"), "the service to recover")
    assert space.uids() == before


def test_a_changed_template_rolls_pods_one_by_one(space: Space) -> None:
    space.apply(**TWO)
    space.serve(2)
    old = space.uids()
    space.apply(**TWO, pod={"template": {"metadata": {"annotations": {"note": "new"}}}})
    until(lambda: len(space.uids() & old) == 1, "the first pod to be replaced")
    until(lambda: len(space.kubelet.pods()) == 2, "its successor")
    assert len(space.uids() & old) == 1  # the second one waits for the first to serve
    assert space.condition("Reconciling")["reason"] == "RollingOut"
    space.kubelet.run_all(2)
    until(lambda: not space.uids() & old, "the second pod to be replaced")
    space.kubelet.run_all(2)
    until(lambda: space.condition("Reconciling").get("status") == "False", "the rollout to end")
    assert {pod["metadata"]["annotations"]["note"] for pod in space.kubelet.pods()} == {"new"}
    assert len({pod["metadata"]["labels"][REVISION] for pod in space.kubelet.pods()}) == 1


def test_policy_and_role_counts_do_not_roll_pods(space: Space) -> None:
    space.apply(**TWO)
    space.serve(2)
    before = space.uids()
    space.apply(roles=[{"name": "Unified", "replicas": 3}], policy={"window": "10s", "drainTimeout": "5s"})
    until(lambda: len(space.uids()) == 3, "a third pod")
    assert before < space.uids()


def test_secrets_reach_the_engine_as_references_only(space: Space) -> None:
    secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    space.apply(engine={"kind": "Simulated", "env": [secret, {"name": "PLAIN", "value": "1"}]})
    (pod,) = until(space.kubelet.pods, "the pod")
    (engine,) = (entry for entry in pod["spec"]["containers"] if entry["name"] == "engine")
    assert secret in engine["env"]
    assert "HF_TOKEN" not in json.dumps(pod["spec"]["initContainers"])
