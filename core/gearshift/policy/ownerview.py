# SPDX-License-Identifier: Apache-2.0
"""Who moves the service: whether the policy may scale it, and whether a human holds it still, as conditions."""

from gearshift.api import reasons
from gearshift.api.conditions import ConditionStatus
from gearshift.api.vocabulary import Actuation, ScaleOwner
from gearshift.policy.scale import bounds
from gearshift.policy.snapshot import Snapshot

Words = tuple[ConditionStatus, str, str]


def scaling_active(snapshot: Snapshot) -> Words:
    """
    | scaling.owner | replicas | room for scaling | hold | actuation | ScalingActive |
    |---|---|---|---|---|---|
    | External | any | | | | False, ExternallyManaged |
    | left out | set | | | | False, ExternallyManaged |
    | else | left out | no | | | False, Fixed |
    | else | left out | yes | yes | | False, HumanHold |
    | else | left out | yes | no | Advisory | False, Advisory |
    | else | left out | yes | no | Approve, Auto | True, WithinBounds |
    """
    spec = snapshot.spec
    if spec.scaling.owner is ScaleOwner.EXTERNAL or spec.replicas is not None:
        count = "not set yet: the roles' replicas count" if spec.replicas is None else f"{spec.replicas}"
        words = f"spec.replicas ({count}) has an owner outside; the policy changes layouts and roles only"
        return "False", reasons.EXTERNALLY_MANAGED, words
    limits = bounds(spec)
    if limits is None:
        return "False", reasons.FIXED, "the spec fixes the number of pods; the policy changes layouts and roles only"
    words = f"the policy keeps {limits.least} to {limits.most} pods"
    if snapshot.hold:
        return "False", reasons.HUMAN_HOLD, f"{words}, once the hold annotation is gone"
    if spec.policy.actuation is Actuation.ADVISORY:
        return "False", reasons.ADVISORY, f"{words}, but policy.actuation is Advisory: it only says what it would do"
    return "True", reasons.SCALING_BOUNDS, words


def held(snapshot: Snapshot) -> Words:
    """True exactly while the hold annotation is set; the message is what it says."""
    if not snapshot.hold:
        return "False", reasons.NOT_HELD, "no hold annotation is set"
    why = f": {snapshot.hold_note}" if snapshot.hold_note else ""
    return "True", reasons.HUMAN_HOLD, f"no healthy pod is taken out of service and the number of pods stays{why}"
