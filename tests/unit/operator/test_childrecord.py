# SPDX-License-Identifier: Apache-2.0
"""What is kept of children: enough to see that one is as it should be, and not a byte of its status."""

import copy
from typing import Any

from gearshift.operator.childrecord import child_record
from gearshift.operator.manifests.children import build_children
from tests.unit.operator.builders import INSTALLATION, owner


def live(kind: str, **status: Any) -> dict[str, Any]:
    """A child as the API server returns it."""
    body = next(each for each in build_children(owner(), INSTALLATION) if each["kind"] == kind)
    added = {"uid": "child-1", "resourceVersion": "7", "managedFields": [{"manager": "gearshift-operator"}]}
    return {**body, "metadata": {**body["metadata"], **added}, "status": status}


def wanted(kind: str, **fields: Any) -> dict[str, Any]:
    """The manifest of a child."""
    return next(each for each in build_children(owner(**fields), INSTALLATION) if each["kind"] == kind)


def test_a_child_equals_the_manifest_that_it_was_made_from_and_no_other() -> None:
    record = child_record(live("PodDisruptionBudget", currentHealthy=1))
    for _ in range(2):
        assert record.equals(wanted("PodDisruptionBudget"))
        assert not record.equals(wanted("PodDisruptionBudget", replicas=4))


def test_a_version_that_somebody_changed_is_compared_anew() -> None:
    changed = copy.deepcopy(live("PodDisruptionBudget"))
    changed["spec"]["minAvailable"] = 0
    changed["spec"]["maxUnavailable"] = 5
    assert child_record(changed).equals(wanted("PodDisruptionBudget"))  # a field that is not the operator's
    changed["metadata"]["labels"].pop("app.kubernetes.io/name")
    assert not child_record(changed).equals(wanted("PodDisruptionBudget"))


def test_the_status_is_read_once_and_not_kept() -> None:
    record = child_record(live("Deployment", availableReplicas=2))
    assert (record.available, record.version, record.uid) == (True, 7, "child-1")
    assert {"status"} & record.body.keys() == set()
    assert "managedFields" not in record.body["metadata"]
    assert not child_record(live("Deployment", availableReplicas=0)).available
    assert not child_record(live("Deployment")).available


def test_a_version_that_differs_in_its_status_or_number_only_says_nothing_new() -> None:
    body = live("Deployment", availableReplicas=1)
    newer = {**body, "metadata": {**body["metadata"], "resourceVersion": "8"}}
    assert child_record(newer).says(child_record(body))
    assert not child_record({**newer, "status": {}}).says(child_record(body))
    assert not child_record({**newer, "spec": {}}).says(child_record(body))
