# SPDX-License-Identifier: Apache-2.0
"""The event loop of a simulated fleet: arrivals, engine steps, phases of pods, scrapes, ticks of the operator."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from random import Random

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, PodPhase, Role, TransitionKind
from gearshift.perf.capacity import transfer_seconds
from gearshift.policy.plan import Action, CreatePod, DeletePod, Transit
from gearshift.policy.snapshot import InFlight, Snapshot
from gearshift.policy.targets import role_targets
from gearshift.scheduling.choose import Split, choose_route
from gearshift.sim.fleet.controllers import Controller
from gearshift.sim.fleet.outcome import Acted, Frame, Outcome
from gearshift.sim.fleet.pod import SimPod
from gearshift.sim.fleet.prometheus import Prometheus
from gearshift.sim.fleet.rates import rates
from gearshift.sim.fleet.replica import Replica
from gearshift.sim.fleet.request import Request
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.load.arrivals import Arrival

Callback = Callable[[float], None]


class World:
    """One run. Times are seconds of the trace."""

    def __init__(
        self, spec: InferenceServiceSpec, settings: FleetSettings, controller: Controller, trace: Sequence[Arrival]
    ) -> None:
        self.spec = spec
        self.settings = settings
        self.controller = controller
        self.requests = [Request(arrival) for arrival in trace]
        self.pods: list[SimPod] = []
        self.past: list[SimPod] = []
        self.acted: list[Acted] = []
        self.frames: list[Frame] = []
        self._prometheus = Prometheus(settings.scrape_seconds)
        self._rng = Random(settings.seed)  # noqa: S311
        self._events: list[tuple[float, int, Callback]] = []
        self._serial = 0
        self._queue: deque[Request] = deque()  # at the router: no pod admits
        self._owed = len(self.requests)
        self._owner: dict[int, tuple[SimPod, SimPod | None]] = {}  # request -> its pod, and where it decodes
        self._flights: dict[str, InFlight] = {}
        self._rates = rates(spec, settings)

    def run(self) -> Outcome:
        """Play the whole trace and what it leaves to be done."""
        for role, count in self.controller.initial(role_targets(self.spec)).items():
            for _ in range(count):
                pod = self._make(len(self.pods), role, self.spec.parallelism.start, 0.0)
                pod.phase = PodPhase.SERVING
        for request in self.requests:
            self._at(request.arrived_at, partial(self._arrive, request))
        self._at(0.0, self._scrape)
        self._at(self.settings.tick_seconds, self._tick)
        now = 0.0
        while self._events and self._owed:
            now, _, callback = heappop(self._events)
            callback(now)
        return Outcome(
            self.controller.name, self.spec, self.requests, [*self.past, *self.pods], self.acted, self.frames, now
        )

    def _at(self, when: float, callback: Callback) -> None:
        self._serial += 1
        heappush(self._events, (when, self._serial, callback))

    # requests

    def _arrive(self, request: Request, now: float) -> None:
        if not self._route(request, now):
            self._queue.append(request)
            self._at(now + self.settings.queue_timeout_seconds, lambda at: self._give_up(request, at))

    def _give_up(self, request: Request, now: float) -> None:  # noqa: ARG002 - a callback is told the time
        if request in self._queue:
            self._queue.remove(request)
            request.failed = "QueueTimeout"
            self._owed -= 1

    def _route(self, request: Request, now: float) -> bool:
        route = choose_route(self.pods, self._rng)
        if route is None:
            return False
        if isinstance(route, Split):
            self._owner[id(request)] = (route.prefill, route.decode)
            route.prefill.in_flight += 1
            route.decode.in_flight += 1
            self._submit(route.prefill, request, now, prefill_only=True)
        else:
            self._owner[id(request)] = (route.pod, None)
            route.pod.in_flight += 1
            self._submit(route.pod, request, now, prefill_only=False)
        return True

    def _submit(self, pod: SimPod, request: Request, now: float, *, prefill_only: bool) -> None:
        replica = pod.take(request, now, prefill_only=prefill_only)
        self._collect(pod, replica, now)
        self._watch(pod, replica)

    def _watch(self, pod: SimPod, replica: Replica) -> None:
        """Wake up when the steps in flight end; a wake-up that comes too early or late finds nothing to do."""
        due = replica.next_event
        if due is not None:
            self._at(due, lambda now: self._step(pod, replica, now, due))

    def _step(self, pod: SimPod, replica: Replica, now: float, due: float) -> None:
        if replica.next_event != due:
            return
        replica.advance(now)
        self._collect(pod, replica, now)
        self._watch(pod, replica)

    def _collect(self, pod: SimPod, replica: Replica, now: float) -> None:
        for request in replica.prefilled:
            self._hand_over(pod, request, now)
        replica.prefilled.clear()
        for request in replica.done:
            self._release(request, now)
        replica.done.clear()

    def _hand_over(self, pod: SimPod, request: Request, now: float) -> None:
        """The prompt is computed: its KV goes to the pod that decodes."""
        _, decode = self._owner[id(request)]
        assert decode is not None
        pod.in_flight -= 1
        self._owner[id(request)] = (decode, None)
        self._settle(pod, now)
        if decode.gone_at is not None:
            request.failed = "PodGone"
            self._owed -= 1
            return
        request.context_tokens = request.prompt_tokens - 1  # the decode pod computes the last token again
        seconds = transfer_seconds(self.settings.profile, self.spec.pod.accelerators, request.prompt_tokens)
        self._at(now + seconds, lambda at: self._submit(decode, request, at, prefill_only=False))

    def _release(self, request: Request, now: float) -> None:
        pod, decode = self._owner.pop(id(request))
        self._owed -= 1
        for each in (pod, decode):
            if each is not None:
                each.in_flight -= 1
                self._settle(each, now)

    # pods

    def _make(self, ordinal: int, role: Role, layout: Layout, now: float) -> SimPod:
        self._serial += 1
        pod = SimPod(ordinal, self._serial, self.spec, self.settings, role, layout)
        pod.created_at = pod.since = now
        self.pods.append(pod)
        return pod

    def _phase(self, pod: SimPod, phase: PodPhase, now: float) -> None:
        pod.phase, pod.since = phase, now
        if pod.admitting:
            waiting, self._queue = self._queue, deque()
            for request in waiting:
                if not self._route(request, now):
                    self._queue.append(request)

    def _settle(self, pod: SimPod, now: float) -> None:
        """Go on with what waits for the pod to be idle."""
        if not pod.idle:
            return
        if pod.deleting:
            self._remove(pod, now)
        elif pod.phase is PodPhase.DRAINING:
            self._switch(pod, now)

    def _remove(self, pod: SimPod, now: float) -> None:
        if pod.gone_at is None:
            pod.gone_at = now
            self.pods.remove(pod)
            self.past.append(pod)
            self._flights.pop(pod.name, None)

    def _cut_off(self, pod: SimPod, now: float) -> None:
        """The grace of a deleted pod is over."""
        if pod.gone_at is not None:
            return
        lost = [request for replica in pod.replicas for request in replica.drop_all("PodGone")]
        pod.in_flight = 0
        self._remove(pod, now)
        for request in lost:
            self._owner.pop(id(request), None)
            self._owed -= 1

    # transitions

    def _transit(self, action: Transit, now: float) -> None:
        pod = next(pod for pod in self.pods if pod.name == action.pod)
        if pod.epoch != action.expected_epoch or not pod.admitting:
            return
        flight = InFlight(f"{pod.name}-{pod.epoch}", pod.name, action.kind, action.to, now)
        self._flights[pod.name] = flight
        self._phase(pod, PodPhase.DRAINING, now)
        self._at(now + self.spec.policy.drain_timeout.seconds, lambda at: self._roll_back(pod, flight, at))
        self._settle(pod, now)

    def _roll_back(self, pod: SimPod, flight: InFlight, now: float) -> None:
        if self._flights.get(pod.name) is flight and pod.phase is PodPhase.DRAINING and not pod.deleting:
            del self._flights[pod.name]
            self._phase(pod, PodPhase.SERVING, now)

    def _switch(self, pod: SimPod, now: float) -> None:
        self._phase(pod, PodPhase.SWITCHING, now)
        settings = self.settings
        seconds = settings.profile.switch_seconds + settings.verify_seconds + settings.publish_seconds
        self._at(now + seconds, lambda at: self._commit(pod, at))

    def _commit(self, pod: SimPod, now: float) -> None:
        flight = self._flights.pop(pod.name, None)
        if flight is None or pod.gone_at is not None:
            return
        if flight.kind is TransitionKind.LAYOUT:
            pod.arrange(Layout(flight.to))
        else:
            pod.role = Role(flight.to)
        pod.epoch += 1
        self._phase(pod, PodPhase.SERVING, now)

    # operator

    def _scrape(self, now: float) -> None:
        up = [pod for pod in self.pods if pod.phase is not PodPhase.STARTING]
        self._prometheus.scrape(up, now)
        self.frames.append(Frame.of(now, self.pods, len(self._queue)))
        self._at(now + self.settings.scrape_seconds, self._scrape)

    def _tick(self, now: float) -> None:
        plan = self.controller.tick(self.snapshot(now))
        for action in plan.actions:
            self.acted.append(Acted(now, action, self._before(action)))
            self._apply(action, now)
        busy = bool(self._flights or plan.actions)
        self._at(now + (self.settings.busy_tick_seconds if busy else self.settings.tick_seconds), self._tick)

    def snapshot(self, now: float) -> Snapshot:
        """What the operator gathers."""
        serving = [pod for pod in self.pods if pod.admitting]
        metrics = self._prometheus.metrics(serving, self.spec.policy.window.seconds, now)
        layouts = tuple(self.spec.parallelism.layouts)
        views = tuple(pod.view(layouts) for pod in self.pods)
        flights = tuple(self._flights.values())
        return replace(
            _EMPTY, at=now, spec=self.spec, pods=views, metrics=metrics, in_flight=flights, rates=self._rates
        )

    def _before(self, action: Action) -> str:
        """What a transition changes from."""
        if not isinstance(action, Transit):
            return ""
        pod = next(pod for pod in self.pods if pod.name == action.pod)
        return (pod.layout if action.kind is TransitionKind.LAYOUT else pod.role).value

    def _apply(self, action: Action, now: float) -> None:
        match action:
            case CreatePod():
                pod = self._make(action.ordinal, action.role, action.layout, now)
                self._at(now + self.settings.startup_seconds, lambda at: self._started(pod, at))
            case DeletePod():
                self._delete(action, now)
            case Transit():
                self._transit(action, now)

    def _started(self, pod: SimPod, now: float) -> None:
        if not pod.deleting and pod.phase is PodPhase.STARTING:
            self._phase(pod, PodPhase.SERVING, now)

    def _delete(self, action: DeletePod, now: float) -> None:
        pod = next((pod for pod in self.pods if pod.uid == action.uid), None)
        if pod is None or pod.deleting:
            return
        pod.deleting = True
        self._at(now + self.spec.policy.drain_timeout.seconds, lambda at: self._cut_off(pod, at))
        self._settle(pod, now)


_EMPTY = Snapshot(
    0.0, "simulation", "sim", "sim", 1, InferenceServiceSpec.model_validate({"model": {"uri": "file:///m"}}), "r"
)
