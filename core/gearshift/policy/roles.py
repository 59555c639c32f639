# SPDX-License-Identifier: Apache-2.0
"""The order of the decisions about roles: bounds of the spec, bridges, pressure."""

from gearshift.policy import bridge, role
from gearshift.policy.bounds import bounds_verdict
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import BridgeWish, Memory
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.verdict import STEADY, Verdict


def roles_verdict(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> Verdict:
    """Transitions that would bring the pods to the wanted roles: those of the first decision that wants any.

    | a bound of the spec is broken | a bridge begins or ends | pressure asks for a flip | result |
    |---|---|---|---|
    | yes | any | any | it is mended |
    | no | yes | any | the bridge |
    | no | no | yes | the flip |
    | no | no | no | the first Hold of them that is not Steady |
    """
    bound = bounds_verdict(snapshot, memory, fleet)
    if bound is not None:
        return bound
    if not snapshot.spec.disaggregated:
        return Verdict(hold=STEADY)
    found = [bridge.bridge_verdict(snapshot, memory, fleet), role.role_verdict(snapshot, memory, fleet)]
    told = [each for each in reversed(found) if each.hold not in (None, STEADY)]
    return next((each for each in found if each.candidates), next(iter(told), found[-1]))


def evidence(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[str]:
    """Keys of `Memory.evidence_since` for what the decisions about roles want now."""
    keys = []
    if isinstance(bridged := bridge.wish(snapshot, memory, fleet), BridgeWish):
        keys.append(role.evidence_key(bridged.receiver))
    flip = role.want(snapshot, memory, fleet)
    if flip.receiver is not None:
        keys.append(role.evidence_key(flip.receiver))
    return keys
