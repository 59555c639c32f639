# SPDX-License-Identifier: Apache-2.0
"""Bridges over the life of a service: pods die, start and change role, and the operator restarts, all at any time."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.v1alpha1.status import InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.bridge import bridge_status
from gearshift.policy.decide import decide
from gearshift.policy.fleet import Fleet
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.plan import Action, CreatePod, Memory, Transit
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Signal, Snapshot

TICK_SECONDS = 5.0
STARTUP_SECONDS = 60.0
SPEC = InferenceServiceSpec.model_validate(
    {
        "model": {"uri": "hf://org/model"},
        "roles": [{"name": "Prefill", "replicas": 2}, {"name": "Decode", "replicas": 4}],
    }
)


@dataclass
class Life:
    """A service whose pressures, deaths and failed transitions are drawn tick by tick."""

    now: float = 1000.0
    memory: Memory = field(default_factory=lambda: Memory(started_at=0.0))
    pods: dict[int, PodView] = field(default_factory=dict)
    flights: dict[str, tuple[InFlight, float]] = field(default_factory=dict)
    told: InferenceServiceStatus = field(default_factory=InferenceServiceStatus)
    made: int = 0
    bridged: Counter[str] = field(default_factory=Counter)  # uid of a pod that starts -> bridges made for it
    returned: Counter[tuple[str, str]] = field(default_factory=Counter)  # bridge, awaited -> times that it went back

    def __post_init__(self) -> None:
        for ordinal in range(6):
            self._create(ordinal, Role.PREFILL if ordinal < 2 else Role.DECODE)
            self.pods[ordinal] = replace(self.pods[ordinal], phase=PodPhase.SERVING, ready=True, created_at=0, since=0)

    def _create(self, ordinal: int, role: Role) -> None:
        self.made += 1
        self.pods[ordinal] = PodView(
            f"s-{ordinal}", f"u-{self.made}", ordinal, "r", role, Layout.TP, 0, PodPhase.STARTING, False, self.now,
            self.now, layouts=(Layout.TP,),
        )  # fmt: skip

    def snapshot(self, hot: float, cool: float) -> Snapshot:
        values = {
            (Signal.TTFT_P90, Role.PREFILL): hot, (Signal.WAITING, Role.PREFILL): 0.0,
            (Signal.ITL_P90, Role.DECODE): cool, (Signal.WAITING, Role.DECODE): 0.0,
            (Signal.RUNNING, Role.DECODE): 1.0, (Signal.KV_USAGE, Role.DECODE): 0.1,
        }  # fmt: skip
        readings = Metrics({key: Reading(value, self.now, 1) for key, value in values.items()})
        flights = tuple(flight for flight, _ in self.flights.values())
        return Snapshot(
            self.now, "ns", "s", "uid", 1, SPEC, "r", tuple(self.pods.values()), readings, in_flight=flights
        )

    def tick(self, hot: float, cool: float, dies: int | None, fails: bool, restarts: bool, seconds: float) -> None:
        """One tick, and what the world does before it."""
        if dies is not None and dies in self.pods:
            self.flights.pop(self.pods.pop(dies).name, None)
        self._progress(fails)
        seen = self.snapshot(hot, cool)
        if restarts:
            self.memory = rebuild(self.now - 40, InferenceServiceStatus.model_validate(self.told.dump()))
        self.memory = fold(self.memory, seen)
        assert fold(self.memory, seen) == self.memory
        plan = decide(seen, self.memory)
        self.told = InferenceServiceStatus(bridges=bridge_status(self.memory, plan, Fleet.of(seen)))
        for action in plan.actions:
            self._apply(action, seconds)
        self.now += TICK_SECONDS

    def _progress(self, fails: bool) -> None:
        for ordinal, pod in self.pods.items():
            if pod.phase is PodPhase.STARTING and self.now - pod.created_at >= STARTUP_SECONDS:
                self.pods[ordinal] = replace(pod, phase=PodPhase.SERVING, ready=True, since=self.now)
            if pod.name in self.flights and self.now >= self.flights[pod.name][1]:
                flight, _ = self.flights.pop(pod.name)
                back = replace(pod, phase=PodPhase.SERVING, since=self.now)
                self.pods[ordinal] = back if fails else replace(back, role=Role(flight.to), epoch=pod.epoch + 1)

    def _apply(self, action: Action, seconds: float) -> None:
        if isinstance(action, CreatePod):
            self._create(action.ordinal, action.role)
            return
        assert isinstance(action, Transit)
        ordinal, pod = next((n, pod) for n, pod in self.pods.items() if pod.name == action.pod)
        self._count(action, pod)
        flight = InFlight(f"{pod.uid}-{pod.epoch}", pod.name, TransitionKind.ROLE, action.to, self.now)
        self.flights[pod.name] = (flight, self.now + seconds)
        self.pods[ordinal] = replace(pod, phase=PodPhase.DRAINING, since=self.now)

    def _count(self, action: Transit, pod: PodView) -> None:
        if action.reason == reasons.BRIDGE:
            assert self.memory.bridge_wish is not None
            self.bridged[self.memory.bridge_wish.awaits_uid] += 1
        if action.reason == reasons.BRIDGE_OVER:
            bridge = next(each for each in self.memory.bridges if each.uid == pod.uid)
            self.returned[bridge.uid, bridge.awaits_uid] += 1


PRESSURES = st.sampled_from([0.0, 0.3, 0.9, 1.5, 4.0])
STEPS = st.lists(
    st.tuples(
        PRESSURES.map(lambda value: value * 1.5),
        PRESSURES.map(lambda value: value * 0.05),
        st.none() | st.integers(0, 5),
        st.booleans(),
        st.integers(0, 9).map(lambda n: n == 9),
        st.sampled_from([0.0, 3.0, 20.0]),
    ),
    min_size=5,
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_bridges_keep_floors_and_the_number_of_pods(
    steps: list[tuple[float, float, int | None, bool, bool, float]],
) -> None:
    """Whatever happens; and a pod is never a bridge twice at a time, nor is a pod awaited twice."""
    life = Life()
    for step in steps:
        life.tick(*step)
        assert len(life.pods) <= 6
        roles = Counter(pod.role for pod in life.pods.values())
        assert len(life.pods) < 6 or all(roles[role.name] >= role.floor for role in SPEC.roles)
        standing = [bridge.uid for bridge in life.memory.bridges]
        assert len(set(standing)) == len(standing)
        awaited = [bridge.awaits_uid for bridge in life.memory.bridges]
        assert len(set(awaited)) == len(awaited)


@settings(max_examples=60, deadline=None)
@given(
    heat=st.sampled_from([1.0, 2.0, 9.0]),
    dies=st.integers(0, 1),
    seconds=st.sampled_from([0.0, 3.0, 12.0]),
    restart_at=st.none() | st.integers(1, 40),
)
def test_one_bridge_for_a_pod_that_starts_and_one_way_back(
    heat: float, dies: int, seconds: float, restart_at: int | None
) -> None:
    """A prefill pod dies under load: its place is bridged once, and the bridge goes back once."""
    life = Life()
    for _ in range(20):
        life.tick(0.5, 0.005, None, False, False, seconds)
    before = Counter(pod.role for pod in life.pods.values())
    life.tick(0.5, 0.005, dies, False, False, seconds)
    for tick in range(60):
        both = sum(pod.serving and pod.role is Role.PREFILL for pod in life.pods.values()) > 1
        life.tick(0.5 if both else heat * 1.5, 0.005, None, False, tick == restart_at, seconds)
    assert list(life.bridged.values()) == [1]
    assert list(life.returned.values()) == [1]
    assert Counter(pod.role for pod in life.pods.values()) == before
    assert life.memory.bridges == ()
