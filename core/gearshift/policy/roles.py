# SPDX-License-Identifier: Apache-2.0
"""The order of the decisions about roles: bounds of the spec, bridges, Unified or split, pressure."""

from gearshift.api.vocabulary import Role
from gearshift.policy import bridge, role, unified
from gearshift.policy.bounds import bounds_verdict
from gearshift.policy.fleet import Fleet
from gearshift.policy.plan import BridgeWish, Memory
from gearshift.policy.snapshot import Snapshot
from gearshift.policy.verdict import STEADY, Verdict


def roles_verdicts(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[Verdict]:
    """What the decisions about roles want, the first that may act first.

    | a bound of the spec is broken | result |
    |---|---|
    | yes | it is mended, and nothing else |
    | no | those that want something: a bridge, a pod to or from Unified, a flip by pressure; then why others hold |

    Pressure compares Prefill with Decode; a service that may be Unified and has no pod in one of them has none.
    """
    bound = bounds_verdict(snapshot, memory, fleet)
    if bound is not None:
        return [bound]
    if not snapshot.spec.disaggregated:
        return [Verdict(hold=STEADY)]
    found = [decide(snapshot, memory, fleet) for decide in (bridge.bridge_verdict, unified.unified_verdict)]
    if _paired(snapshot, fleet):
        found.append(role.role_verdict(snapshot, memory, fleet))
    return [*(each for each in found if each.candidates), *(each for each in reversed(found) if not each.candidates)]


def evidence(snapshot: Snapshot, memory: Memory, fleet: Fleet) -> list[str]:
    """Keys of `Memory.evidence_since` for what the decisions about roles want now."""
    keys = []
    if isinstance(bridged := bridge.wish(snapshot, memory, fleet), BridgeWish):
        keys.append(role.evidence_key(bridged.receiver))
    change = unified.want(snapshot, memory, fleet)
    if change.receiver is not None:
        keys.append(role.evidence_key(change.receiver, change.donor))
    flip = role.want(snapshot, memory, fleet)
    if flip.receiver is not None:
        keys.append(role.evidence_key(flip.receiver))
    return keys


def _paired(snapshot: Snapshot, fleet: Fleet) -> bool:
    """Whether there is a Prefill and a Decode pod, or has to be."""
    return snapshot.spec.role(Role.UNIFIED) is None or bool(fleet.roles[Role.PREFILL] and fleet.roles[Role.DECODE])
