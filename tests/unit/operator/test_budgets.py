# SPDX-License-Identifier: Apache-2.0
"""Who holds how many accelerators of a namespace."""

from gearshift.operator.budgets import Budgets
from gearshift.operator.index import Index
from gearshift.operator.manifests.meta import Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.policy.snapshot import NamespaceBudget
from tests.unit.operator.builders import INSTALLATION, spec


def index(*pods: tuple[str, str, int, int]) -> Index:
    """Pods as namespace, uid of the service, number of pods, accelerators of each."""
    found = Index(lambda _: None)
    for namespace, uid, count, accelerators in pods:
        owner = Owner(namespace, f"of-{uid}", uid, spec(pod={"accelerators": accelerators}))
        for ordinal in range(count):
            body = build_pod(owner, INSTALLATION, ordinal, owner.spec.roles[0].name, owner.spec.parallelism.start)
            body["metadata"] |= {"uid": f"{uid}-{ordinal}", "resourceVersion": "1"}
            found.put_pod(body)
    return found


def test_other_services_of_the_namespace_count() -> None:
    budgets = Budgets(index(("a", "one", 2, 8), ("a", "two", 3, 4), ("b", "three", 1, 8)), {"a": 64})
    assert budgets.of("a", "one") == NamespaceBudget(64, 12)
    assert budgets.of("a", "new") == NamespaceBudget(64, 28)
    assert budgets.of("b", "three") is None


def test_a_star_is_for_every_other_namespace() -> None:
    budgets = Budgets(index(), {"a": 64, "*": 8})
    assert budgets.of("a", "x") == NamespaceBudget(64, 0)
    assert budgets.of("b", "x") == NamespaceBudget(8, 0)
