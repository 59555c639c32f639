# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudget of the engine pods."""

from gearshift.api import names
from gearshift.operator.manifests import meta
from gearshift.operator.manifests.meta import Manifest, Owner
from gearshift.policy.targets import total_target


def build_budget(owner: Owner, pods: int | None = None) -> Manifest:
    """Evictions take one pod at a time of those that the service is to have: ``pods``, or what its spec says.

    The floor is a number of pods: pods without a workload controller of Kubernetes' own allow nothing else. Pods that
    are not ready may always go: one that can't start must not keep its node from being drained.
    """
    budget = meta.child(owner, "policy/v1", "PodDisruptionBudget", owner.name, names.COMPONENT_ENGINE)
    budget["spec"] = {
        "minAvailable": max((total_target(owner.spec) if pods is None else pods) - 1, 0),
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": meta.selector(owner, names.COMPONENT_ENGINE)},
    }
    return budget
