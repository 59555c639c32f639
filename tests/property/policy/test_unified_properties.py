# SPDX-License-Identifier: Apache-2.0
"""Unified or split comes to rest under a steady load, though the performance model is wrong and readings are noisy."""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold
from gearshift.policy.plan import Memory, Transit
from gearshift.policy.rates import EngineRates
from gearshift.policy.snapshot import InFlight, Metrics, PodView, Reading, Signal, Snapshot
from gearshift.policy.unified import halved

TICK_SECONDS = 10.0
MODEL = EngineRates(10_000.0, 0.02, 0.0002, 0.5)
UNIFIED, PREFILL, DECODE = Role.UNIFIED, Role.PREFILL, Role.DECODE


def service(floor: int) -> InferenceServiceSpec:
    """All three roles, the split ones with a floor."""
    split = [{"name": name, "replicas": floor, "min": floor} for name in ("Prefill", "Decode")]
    return InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "replicas": 8,
            "roles": [{"name": "Unified", "replicas": 0, "min": 0}, *split],
            "policy": {"maxTransitionsPerHour": 1000},
        }
    )


@dataclass
class Plant:
    """Pods that do ``truth``, asked for ``prompts`` and ``tokens`` per second; readings are noisy by ``noise``."""

    pods: dict[str, PodView]
    truth: EngineRates
    prompts: float
    tokens: float
    transfer_seconds: float
    noise: float
    floor: int
    random: Random
    now: float = 10_000.0
    memory: Memory = field(default_factory=lambda: Memory(started_at=0.0))
    moves: list[tuple[str, str]] = field(default_factory=list)
    flight: InFlight | None = None

    def run(self, seconds: float) -> None:
        """Tick by tick; a transition takes two."""
        end = self.now + seconds
        while self.now < end:
            seen = self.snapshot()
            self.memory = fold(self.memory, seen)
            if self.flight is not None and self.now - self.flight.started_at >= 2 * TICK_SECONDS:
                self._arrive(self.flight)
            for action in decide(seen, self.memory).actions:
                assert isinstance(action, Transit), action
                self._leave(action)
            self.now += TICK_SECONDS

    def _leave(self, action: Transit) -> None:
        assert self.flight is None
        pod = self.pods[action.pod]
        self.moves.append((pod.role, action.to))
        self.flight = InFlight("t", pod.name, TransitionKind.ROLE, action.to, self.now)
        self.pods[pod.name] = replace(pod, phase=PodPhase.DRAINING, since=self.now)
        assert any(each.serving for each in self.pods.values())

    def _arrive(self, flight: InFlight) -> None:
        pod = self.pods[flight.pod]
        changed = replace(pod, role=Role(flight.to), epoch=pod.epoch + 1, phase=PodPhase.SERVING, since=self.now)
        self.pods[pod.name], self.flight = changed, None

    def snapshot(self) -> Snapshot:
        """What the operator would see."""
        flights = () if self.flight is None else (self.flight,)
        pods = tuple(self.pods.values())
        rates = dict.fromkeys(Layout, MODEL)
        spec = service(self.floor)
        return Snapshot(self.now, "ns", "s", "uid", 1, spec, "r", pods, self._metrics(), in_flight=flights, rates=rates)

    def _metrics(self) -> Metrics:
        """Unified pods and pairs share the load by what they can do; what they can't do waits."""
        counts = Counter(pod.role for pod in self.pods.values() if pod.serving)
        whole = self.truth.work(self.prompts, self.tokens)
        prefill, decode = self.truth.work(self.prompts, 0), self.truth.work(0, self.tokens)
        pair = min(counts[PREFILL] / prefill, counts[DECODE] / decode)
        share = counts[UNIFIED] / whole / (counts[UNIFIED] / whole + pair) if counts[UNIFIED] else 0.0
        busy = {
            UNIFIED: share * whole / max(1, counts[UNIFIED]),
            PREFILL: (1 - share) * prefill / max(1, counts[PREFILL]),
            DECODE: (1 - share) * decode / max(1, counts[DECODE]),
        }
        late = {role: self.truth.step_seconds / max(0.05, 1 - load) for role, load in busy.items()}
        readings: dict[tuple[Signal, Role | None], Reading] = {}
        for role in (role for role in Role if counts[role]):
            part = share if role is UNIFIED else 1 - share
            readings |= self._scope(role, part, busy[role], late[role])
        there = [role for role in (UNIFIED, DECODE) if counts[role]] or [PREFILL]
        readings |= self._scope(None, 1.0, max(busy[role] for role in counts), max(late[role] for role in there))
        transfers = self.transfer_seconds * (1 - share) * self.tokens / 250
        readings[Signal.TRANSFERS, DECODE] = self._noisy(transfers)
        return Metrics(readings)

    def _scope(
        self, role: Role | None, part: float, busy: float, late: float
    ) -> dict[tuple[Signal, Role | None], Reading]:
        queue = max(0.0, busy - 1) * 10
        values = {
            Signal.WAITING: queue,
            Signal.RUNNING: 20 * min(busy, 1),
            Signal.KV_USAGE: 0.5 * min(busy, 1),
            Signal.REQUESTS: part * self.tokens / 250,
            Signal.PROMPT_TOKENS: 0.0 if role is DECODE else part * self.prompts / max(1, busy),
            Signal.GENERATION_TOKENS: 0.0 if role is PREFILL else part * self.tokens / max(1, busy),
            Signal.TTFT_P90: 0.2 + 0.5 * busy + queue,
            Signal.ITL_P90: late,
        }
        return {(signal, role): self._noisy(value) for signal, value in values.items()}

    def _noisy(self, value: float) -> Reading:
        return Reading(value * (1 + self.random.uniform(-self.noise, self.noise)), self.now, 1)


def fleet(unified: int, prefill: int, decode: int) -> dict[str, PodView]:
    """Pods that have served for long."""
    roles = [UNIFIED] * unified + [PREFILL] * prefill + [DECODE] * decode
    pods = [
        PodView(f"s-{n}", f"u-{n}", n, "r", role, Layout.TP, 0, PodPhase.SERVING, True, 0, 0, layouts=(Layout.TP,))
        for n, role in enumerate(roles)
    ]
    return {pod.name: pod for pod in pods}


@settings(max_examples=20, deadline=None)
@given(
    start=st.sampled_from([(8, 0, 0), (0, 4, 4), (4, 2, 2), (6, 1, 1), (2, 5, 1)]),
    work=st.floats(0.2, 6.0),
    share=st.floats(0.05, 0.95),
    wrong=st.sampled_from([0.6, 0.8, 1.0, 1.25, 1.6]),
    transfer=st.sampled_from([0.01, 0.3, 0.9, 3.0]),
    noise=st.sampled_from([0.0, 0.1]),
    floor=st.sampled_from([0, 1]),
)
def test_unified_or_split_comes_to_rest(
    start: tuple[int, int, int], work: float, share: float, wrong: float, transfer: float, noise: float, floor: int
) -> None:
    """``work`` is what the load keeps busy of 8 pods by the model, ``wrong`` how much more they really can do."""
    truth = EngineRates(
        MODEL.prefill_tokens_per_second * wrong, MODEL.step_seconds, MODEL.sequence_seconds / wrong, 0.5
    )
    prompts, tokens = work * share * MODEL.prefill_tokens_per_second, work * (1 - share) / MODEL.sequence_seconds
    plant = Plant(fleet(*start), truth, prompts, tokens, transfer, noise, floor, Random(1))
    plant.run(3600)
    assert changes_of_mind(plant) <= 1, plant.moves
    assert len(plant.moves) <= 16
    counts = Counter(pod.role for pod in plant.pods.values())
    assert not halved(counts), plant.moves
    assert counts[PREFILL] >= floor
    assert counts[DECODE] >= floor


def changes_of_mind(plant: Plant) -> int:
    """How often pods went to Unified after others had left it, or the reverse."""
    ways = [to == UNIFIED for from_, to in plant.moves if UNIFIED in (from_, to)]
    return sum(one != other for one, other in pairwise(ways))


def test_ease_makes_pods_unified_and_a_load_of_prompts_splits_them() -> None:
    """The loop is not merely still; each way is gone once."""
    steep = EngineRates(10_000.0, 0.027, 0.0002, 0.5)
    plant = Plant(fleet(0, 4, 4), steep, 2000.0, 1000.0, 0.01, 0.05, 1, Random(1))
    plant.run(900)
    assert Counter(pod.role for pod in plant.pods.values()) == {UNIFIED: 6, PREFILL: 1, DECODE: 1}
    plant.prompts, plant.tokens = 30_000.0, 3000.0
    plant.run(1800)
    counts = Counter(pod.role for pod in plant.pods.values())
    assert counts[UNIFIED] <= 2
    assert changes_of_mind(plant) == 1
