# SPDX-License-Identifier: Apache-2.0
"""What a human can do about a decision that holds, by its reason; where there is nothing to do, what it waits for."""

from typing import Final

from gearshift.api import reasons

AT_REST: Final = frozenset({reasons.STEADY, reasons.OVERRIDE})
"""Reasons of a Hold that nothing keeps back: all is as the policy, or an order, wants it."""

WAITING: Final = frozenset({reasons.AWAITING_APPROVAL, reasons.APPROVAL_EXPIRED})
"""Reasons of a Hold that a human's approval ends."""

_ADVICE: Final = {
    reasons.ADVISORY: "policy.actuation is Advisory, so it is only reported; set it to Approve or Auto to have it done",
    reasons.AWAITING_APPROVAL: "kubectl gearshift approve {name} {plan}",
    reasons.APPROVAL_EXPIRED: "kubectl gearshift approve {name} {plan}",
    reasons.HUMAN_HOLD: "kubectl gearshift release {name}",
    reasons.ROLLOUT_IN_PROGRESS: "wait: layouts and roles keep still until no pod of an older spec is left",
    reasons.ROLLOUT_WAITING: "wait: the next pod is replaced once every other pod serves",
    reasons.TRANSITION_IN_FLIGHT: "wait: one transition of a service at a time",
    reasons.METRICS_MISSING: "see why Prometheus has no fresh series for the query; unknown is neither idle nor busy",
    reasons.RATES_UNKNOWN: "see status.load.capacityFrom; order the role: kubectl gearshift flip {name} Unified",
    reasons.NO_SERVING_PODS: "see why no pod serves: kubectl gearshift status {name}",
    reasons.EVIDENCE_SHORT: "wait: a change must have been wanted for a while (policy.window)",
    reasons.RESTART_HOLD: "wait: the operator has watched for less than policy.window",
    reasons.DWELL: "wait: a pod keeps its layout and role for policy.dwell",
    reasons.TRANSITION_COST: "wait: a pod keeps its layout and role five times as long as changes take",
    reasons.COOLDOWN: "wait: a service rests for policy.cooldown after a transition",
    reasons.BACKOFF: "wait, or see why the last tries failed: kubectl gearshift history {name}",
    reasons.TERMINAL_FAILURE: "see why: kubectl gearshift history {name}; delete the pod to have it made anew",
    reasons.UNDOES: "wait: a change is undone only on evidence that is younger than it",
    reasons.HOURLY_LIMIT: "wait, or raise spec.policy.maxTransitionsPerHour",
    reasons.BUDGET_EXHAUSTED: "raise spec.policy.maxAccelerators, or the namespace's budget",
    reasons.ROLE_FLOOR: "lower min of the role in spec.roles, or add pods",
    reasons.ROLE_CEILING: "raise max of the role in spec.roles",
    reasons.CAPACITY_KEPT: "wait until more pods serve, or add pods",
    reasons.NOT_CAPABLE: "add the layout to spec.parallelism.layouts; pods made before it was listed can't take it",
    reasons.KV_BOUND: "add pods: another layout would not give more KV cache for certain",
}


def advice(reason: str, name: str, plan: str) -> str | None:
    """What to do, or None where there is nothing to say."""
    words = _ADVICE.get(reason)
    return None if words is None else words.format(name=name, plan=plan)
