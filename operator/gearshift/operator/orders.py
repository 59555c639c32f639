# SPDX-License-Identifier: Apache-2.0
"""Orders transitions. An order's id follows from the plan, so that the same decision taken twice is one order."""

from collections.abc import Iterable

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.v1alpha1.status import TransitionRecord
from gearshift.api.vocabulary import Layout, TransitionKind
from gearshift.api.wire import TransitionRequest, TransitionStatus
from gearshift.operator.errors import SidecarError
from gearshift.operator.gather import Gathered
from gearshift.operator.lease import Lease
from gearshift.operator.sidecars import Sidecars
from gearshift.policy.plan import Plan, Transit


class Orders:
    """Sends a plan's transitions to the sidecars."""

    def __init__(self, sidecars: Sidecars, lease: Lease) -> None:
        self._sidecars = sidecars
        self._lease = lease

    async def order(self, plan: Plan, action: Transit, gathered: Gathered) -> TransitionStatus | str:
        """Order one transition; what the sidecar says of it, or its refusal in words.

        Raises:
            NotLeader: this process may not act now.
        """
        self._lease.check()
        if gathered.fencing_seen > self._lease.token:
            self._lease.raise_token(gathered.fencing_seen)
            return (
                f"a sidecar has seen fencing token {gathered.fencing_seen}, ours is {self._lease.token}: it is raised"
            )
        address = gathered.addresses.get(action.pod)
        if address is None:
            return f"pod {action.pod} has no address"
        try:
            return await self._sidecars.order(address, self._request(plan, action, gathered))
        except SidecarError as problem:
            if problem.reason == reasons.STALE_FENCING_TOKEN and problem.fencing_token is not None:
                self._lease.raise_token(problem.fencing_token)
            return f"{action.kind.value} of {action.pod} to {action.to}: {problem}"

    def _request(self, plan: Plan, action: Transit, gathered: Gathered) -> TransitionRequest:
        spec: InferenceServiceSpec = gathered.snapshot.spec
        return TransitionRequest(
            id=order_id(plan.id, action.pod, gathered.history),
            kind=action.kind,
            to=action.to,
            expected_epoch=action.expected_epoch,
            fencing_token=self._lease.token,
            drain_timeout=spec.policy.drain_timeout,
            drain="Wait" if action.threshold_tokens is None else "None",
            shift_threshold_tokens=_threshold(spec, action),
        )


def _threshold(spec: InferenceServiceSpec, action: Transit) -> int | None:
    """What the spec says of layout Shift travels with every order that leads to it."""
    if action.kind is TransitionKind.LAYOUT and action.to == Layout.SHIFT:
        return spec.parallelism.shift_threshold_tokens
    return None


def order_id(plan: str, pod: str, history: Iterable[TransitionRecord]) -> str:
    """``PLAN-POD``; with a number when this very order was tried before and was rolled back."""
    base = f"{plan}-{pod}"
    used = {item.id for item in history}
    if base not in used:
        return base
    attempt = 2
    while f"{base}-{attempt}" in used:
        attempt += 1
    return f"{base}-{attempt}"
