# SPDX-License-Identifier: Apache-2.0
"""A toy service in a closed loop: constant demand in, readings out, plans carried out. Enough to show oscillation."""

from dataclasses import dataclass, field, replace

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold
from gearshift.policy.plan import Memory, Transit
from gearshift.policy.snapshot import Metrics, PodView, Reading, Signal, Snapshot

TICK_SECONDS = 5.0
QUIET = Reading(None, why="no requests in the window", quiet=True)


@dataclass
class Plant:
    """``demand`` and ``capacity`` are tokens/s, capacity of one pod by layout; prompt tokens are ``prompt_share``.

    A phase whose demand is above what its pods carry queues without bound; below, latency follows its utilisation.
    """

    spec: InferenceServiceSpec
    pods: list[PodView]
    demand: float
    capacity: dict[Layout, float]
    prompt_share: float = 0.5
    decode_factor: float = 1.0  # tokens/s of a decode pod by tokens/s of a prefill pod
    now: float = 1000.0
    memory: Memory = field(default_factory=lambda: Memory(started_at=0.0))
    moves: list[tuple[float, Transit]] = field(default_factory=list)
    _queues: dict[Role | None, float] = field(default_factory=dict)

    def run(self, seconds: float) -> None:
        """Tick by tick; a transition takes one tick."""
        end = self.now + seconds
        while self.now < end:
            snapshot = self._snapshot()
            self.memory = fold(self.memory, snapshot)
            for action in decide(snapshot, self.memory).actions:
                assert isinstance(action, Transit), action
                self.moves.append((self.now, action))
                self.pods = [self._moved(pod, action) for pod in self.pods]
            self.now += TICK_SECONDS

    def _moved(self, pod: PodView, transit: Transit) -> PodView:
        if pod.name != transit.pod:
            return pod
        changed = replace(pod, epoch=pod.epoch + 1, since=self.now + TICK_SECONDS)
        if transit.kind is TransitionKind.LAYOUT:
            return replace(changed, layout=Layout(transit.to))
        return replace(changed, role=Role(transit.to))

    def _snapshot(self) -> Snapshot:
        scopes = (None, Role.PREFILL, Role.DECODE) if self.spec.disaggregated else (None,)
        readings = {}
        for scope in scopes:
            for signal, reading in self._readings(scope).items():
                readings[signal, scope] = replace(reading, at=self.now)
        return Snapshot(self.now, "ns", "s", "uid", 1, self.spec, "r", tuple(self.pods), Metrics(readings))

    def _readings(self, scope: Role | None) -> dict[Signal, Reading]:
        offered, carried = self._flows(scope)
        load = offered / carried
        done = min(offered, carried)
        queue = max(0.0, self._queues.get(scope, 0.0) + (offered - carried) * TICK_SECONDS / 1000)
        self._queues[scope] = queue
        share = {None: self.prompt_share, Role.PREFILL: 1.0, Role.DECODE: 0.0}[scope]
        busy = offered > 0
        return {
            Signal.WAITING: Reading(queue),
            Signal.RUNNING: Reading(40.0 * min(load, 1.0) * len(self.pods)),
            Signal.KV_USAGE: Reading(0.8 * min(load, 1.0)),
            Signal.PROMPT_TOKENS: Reading(done * share),
            Signal.GENERATION_TOKENS: Reading(done * (1 - share)),
            Signal.TTFT_P90: Reading(0.3 + queue + 0.8 * min(load, 1.0)) if busy else QUIET,
            Signal.ITL_P90: Reading(0.01 + 0.06 * min(load, 1.5)) if busy else QUIET,
        }

    def _flows(self, scope: Role | None) -> tuple[float, float]:
        """Tokens per second that are asked of a phase, and that its pods can do."""
        members = [pod for pod in self.pods if scope in (None, pod.role)]
        assert all(pod.phase is PodPhase.SERVING for pod in members)
        pace = self.decode_factor if scope is Role.DECODE else 1.0
        carried = pace * sum(self.capacity[pod.layout] for pod in members)
        offered = {
            None: self.demand,
            Role.PREFILL: self.demand * self.prompt_share,
            Role.DECODE: self.demand * (1 - self.prompt_share),
        }[scope]
        return offered, carried
