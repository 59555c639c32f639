# SPDX-License-Identifier: Apache-2.0
"""What a decision is: actions, or Hold with a reason; and the memory that survives from tick to tick."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gearshift.api.vocabulary import BridgePhase, Layout, Role, TransitionKind
from gearshift.policy.samples import Sample
from gearshift.policy.surges import Surge


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Make the pod of an ordinal."""

    ordinal: int
    role: Role
    layout: Layout
    reason: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod; its termination drains it. ``force`` only for a pod whose node is gone."""

    name: str
    uid: str
    reason: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class Transit:
    """Change layout, role or threshold of one pod."""

    pod: str
    kind: TransitionKind
    to: str
    expected_epoch: int
    reason: str
    threshold_tokens: int | None = None  # a change of the threshold within layout Shift


Action = CreatePod | DeletePod | Transit


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing to do, and why."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Outcome of one tick.

    ``actions`` are to be carried out now, in order. ``proposal`` is what the policy would do when actuation or a guard
    keeps it from acting. ``id`` is stable for equal proposals, so that a human can approve it.
    """

    id: str
    actions: tuple[Action, ...] = ()
    proposal: tuple[Action, ...] = ()
    hold: Hold | None = None
    reason: str = ""
    message: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    pods: int | None = None  # that the service is to have, where scaling decides it


@dataclass(frozen=True, slots=True)
class Capacity:
    """Tokens per second and pod at which a layout or role was seen to saturate."""

    tokens_per_second: float
    at: float


@dataclass(frozen=True, slots=True)
class Need:
    """Pods that the demand of a moment asked for: to meet it, to stay, and to carry its work alone."""

    at: float
    up: int
    down: int
    carry: int
    load: float = 0.0  # that its measured work keeps busy, in tenths, so that few needs outlast another


@dataclass(frozen=True, slots=True)
class ScaleMemory:
    """What scaling remembers: the number of pods that it keeps, what was needed, and how demand moved; oldest first.

    ``needs`` holds the moments that still count: those since which no moment needed as much.
    """

    desired: int
    wanted: int = 0  # what it would desire now, if it may act
    needs: tuple[Need, ...] = ()
    samples: tuple[Sample, ...] = ()  # of the last few start-up times
    surges: tuple[Surge, ...] = ()  # of the last hour, each higher than those after it
    grown_at: float | None = None
    shrunk_at: float | None = None  # and has not grown since
    regretted_at: float | None = None  # when it last had to grow soon after it had shrunk
    regrets: int = 0  # how often of late


@dataclass(frozen=True, slots=True)
class Move:
    """A pod came out of a transition with another layout or role."""

    at: float
    pod: str
    kind: TransitionKind
    from_: str
    to: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pod was when it last served."""

    role: Role
    layout: Layout


@dataclass(frozen=True, slots=True)
class Startup:
    """How long a pod of a revision took from its creation to serving."""

    revision: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Approved:
    """A human's yes to a plan, since when it has been seen and until when it holds."""

    plan: str
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class BridgeWish:
    """A pod of ``donor`` should serve as ``receiver`` until the pod of uid ``awaits_uid``, which starts, serves."""

    at: float
    donor: Role
    receiver: Role
    awaits_uid: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Bridge:
    """A pod stands in for one that starts; see `gearshift.policy.bridge`."""

    pod: str
    uid: str
    from_: Role
    to: Role
    awaits: str  # name of the pod that starts
    awaits_uid: str
    phase: BridgePhase
    served_at: float | None = None  # when the awaited pod was first seen serving


@dataclass(frozen=True, slots=True)
class Memory:
    """What must outlive a tick. Rebuilt from status (transition history) after a restart."""

    started_at: float  # when this operator began to watch the service; nothing shrinks or flips within one window of it
    last_transition_at: float | None = None  # of the service
    transition_at: Mapping[str, float] = field(default_factory=dict)  # pod -> when its last transition ended
    evidence_since: Mapping[str, float] = field(
        default_factory=dict
    )  # candidate decision -> since when it has been wanted
    capacity: Mapping[str, Capacity] = field(default_factory=dict)  # see gearshift.policy.capacity
    scale: ScaleMemory | None = None  # None: scaling is off, or nothing is remembered
    seen: Mapping[str, Seen] = field(default_factory=dict)  # uid of a pod -> what it was when it last served
    moves: tuple[Move, ...] = ()  # of the last hour, oldest first
    approved: Approved | None = None  # None: nobody has approved anything
    startups: Mapping[str, Startup] = field(default_factory=dict)  # uid of a pod that was seen to start -> how long
    slow_transfers_at: float | None = None  # when KV caches last took too long to arrive
    bridges: tuple[Bridge, ...] = ()
    bridge_wish: BridgeWish | None = None  # the last one, as long as its order may not show yet
