# SPDX-License-Identifier: Apache-2.0
"""The agent of a pod: feeds events to the pure machine, carries its effects out, and shows the state to everyone.

One rule keeps it simple: at most one effect runs, and it belongs to the present phase. When the phase changes for
another cause (the engine is lost, the pod terminates), the running effect is cancelled and can no longer speak.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gearshift.api import reasons
from gearshift.api.engine import EngineState
from gearshift.api.vocabulary import Layout, PodPhase
from gearshift.api.wire import Ack, Load, PodState, TransitionRequest
from gearshift.sidecar.bring_up import bring_up
from gearshift.sidecar.confirm import confirm
from gearshift.sidecar.drain import drain
from gearshift.sidecar.engines import EnginePlan
from gearshift.sidecar.host_watch import HostWatch
from gearshift.sidecar.hub import Hub
from gearshift.sidecar.ledger import Detail, Record, advance, fence
from gearshift.sidecar.machine import Effect, Event
from gearshift.sidecar.metrics import Metrics
from gearshift.sidecar.orders import Accepted, Capability, Judgement, judge, roles_of
from gearshift.sidecar.pod import EffectFunction, Pod
from gearshift.sidecar.shut_down import shut_down
from gearshift.sidecar.state_file import write_record
from gearshift.sidecar.switching import restore, switch
from gearshift.sidecar.verification import prove

log = logging.getLogger(__name__)
DRAIN_MARGIN_SECONDS: Final = 2.0
"""Part of a pod's grace period kept for stopping the engines."""
_EFFECTS: Final[Mapping[Effect, EffectFunction]] = {
    Effect.BRING_UP: bring_up,
    Effect.DRAIN: drain,
    Effect.SWITCH: switch,
    Effect.VERIFY: prove,
    Effect.CONFIRM: confirm,
    Effect.RESTORE: restore,
    Effect.SHUT_DOWN: shut_down,
}
_PROVEN: Final = frozenset({Event.ENGINE_READY, Event.VERIFIED, Event.RESTORED})
_DISPROVEN: Final = frozenset({Event.ENGINE_LOST, Event.START_REFUSED, Event.RESTORE_FAILED})


@dataclass(slots=True)
class _Shown:
    """The load as last shown, and when (monotonic seconds)."""

    load: Load
    at: float


class Agent:
    """One pod. All methods run in the event loop's thread."""

    def __init__(
        self, pod: Pod, watch: HostWatch, record: Record, metrics: Metrics, clock: Callable[[], float] = time.time
    ) -> None:
        self.pod = pod
        self.hub = Hub()
        self.record = record
        self.metrics = metrics
        self.settled = asyncio.Event()  # the first phase is over
        self.proven = False  # the active engine has answered a probe since it was started
        pod.note = self.note
        self._watch = watch
        self._clock = clock
        self._load = Load()
        self._shown = _Shown(self._load, 0.0)
        self._threshold: int | None = None  # of layout Shift, as the active engine says
        self._effect: asyncio.Task[None] | None = None
        self._group: asyncio.TaskGroup | None = None

    @property
    def ready(self) -> bool:
        """Whether the pod counts as ready: through transitions, but not without a proven engine or when closed."""
        return self.proven and self.record.phase is not PodPhase.FAILED

    async def run(self) -> None:
        """Run the pod until cancelled. A defect raises: the next sidecar goes on from the state file."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._watch.run(self.terminate))
            group.create_task(self._beat())
            self._save()
            self._set_out(group)

    def _set_out(self, group: asyncio.TaskGroup) -> None:
        refusal = self.pod.residents.engines.refusal
        if self.record.phase is not PodPhase.STARTING:
            self.settled.set()
        elif refusal:
            self.feed(Event.START_REFUSED, Detail(reasons.START_REFUSED, refusal, retryable=False))
        else:
            self._begin(Effect.BRING_UP)
        if not refusal:
            for keeper in self.pod.residents.all(self.record.layout):
                group.create_task(keeper.run(self))

    def order(self, request: TransitionRequest) -> Judgement:
        """Accept or refuse an order. Its leader is the newest one known from now on, whatever became of the order."""
        judgement = judge(self.record, request, self._capability())
        if request.fencing_token > self.record.fencing_token:
            self._replace(fence(self.record, request.fencing_token))
        if isinstance(judgement, Accepted):
            log.info("order %s: %s to %s", request.id, request.kind.value, request.to)
            self.feed(Event.ORDERED, Detail(order=request))
        return judgement

    def acknowledge(self, ack: Ack) -> None:
        """Take a router's word."""
        self.pod.routers.acked(ack, self.pod.monotonic())

    def stream_opened(self, router: str) -> None:
        """A router has opened a state stream."""
        self.pod.routers.opened(router, self.pod.monotonic())
        self.metrics.routers(self.pod.routers.connected())

    def stream_closed(self, router: str) -> None:
        """A router's state stream has ended."""
        self.pod.routers.closed(router, self.pod.monotonic())
        self.metrics.routers(self.pod.routers.connected())

    def feed(self, event: Event, detail: Detail) -> None:
        """Let the machine take one step.

        Raises:
            IllegalEventError: the event cannot happen in this phase.
        """
        before = self.record
        record, effects = advance(before, event, self._clock(), detail)
        self.proven = (self.proven or event in _PROVEN) and event not in _DISPROVEN
        if record.phase is not before.phase:
            log.info("%s: %s -> %s %s", event.value, before.phase.value, record.phase.value, detail.message)
            self._cancel_effect()
        self._replace(record)
        if before.order is not None and record.order is None and record.transition is not None:
            self.metrics.finished(record.transition)
        if record.phase is not PodPhase.STARTING:
            self.settled.set()
        for effect in effects:
            self._begin(effect)

    def note(self, message: str) -> None:
        """Show a message in the state."""
        if message != self.record.message:
            self._replace(self.record.model_copy(update={"message": message, "sequence": self.record.sequence + 1}))

    def terminate(self, grace_seconds: float | None) -> None:
        """The engine container is being stopped: drain within its grace period."""
        if grace_seconds is not None:
            self.pod.drain_until = self.pod.monotonic() + max(0.0, grace_seconds - DRAIN_MARGIN_SECONDS)
        self.feed(Event.TERMINATE, Detail(reasons.POD_TERMINATING, "the pod is terminating"))

    def state(self) -> PodState:
        """The state as routers and operator see it."""
        record, settings = self.record, self.pod.settings
        return PodState(
            pod=settings.pod.name,
            uid=settings.pod.uid,
            sequence=record.sequence,
            epoch=record.epoch,
            phase=record.phase,
            admitting=record.admitting,
            role=record.role,
            layout=record.layout,
            layouts=self.pod.residents.ready_layouts(record.layout),
            shift_threshold_tokens=self._shift_threshold(),
            engine_port=self.pod.residents.serving(record.layout).plan.port,
            model=settings.config.model,
            load=self._load,
            transition=record.transition,
            fencing_token=record.fencing_token,
            since=record.since,
            message=record.message,
        )

    def state_line(self) -> bytes:
        """The state as one line of the stream."""
        return self.state().model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"

    # What keepers tell (`gearshift.sidecar.keeper.Listener`).

    def is_active(self, plan: EnginePlan) -> bool:
        """True for the engine that serves the present layout."""
        return self.record.layout in plan.layouts

    async def prepare(self, plan: EnginePlan) -> None:
        """Warm an engine up that is not needed yet, and pause it. The engines of an order in flight are left alone."""
        if self.is_active(plan) or self._is_target(plan):
            return
        client = self.pod.residents.serving(plan.layouts[0]).client
        if not (await client.state()).paused:
            config = self.pod.settings.config
            probe = await client.probe(config.model, self.record.role, self.pod.settings.timings.probe)
            self.metrics.probed(plan.name, probe.seconds)
            await client.pause()

    def observed(self, plan: EnginePlan, state: EngineState) -> None:
        """Show the load of the active engine, at most once every ``load_interval``."""
        if not self.is_active(plan):
            return
        self._load = Load(running=state.running, waiting=state.waiting, kv_usage=state.kv_usage)
        self._threshold = state.shift_threshold_tokens
        now = self.pod.monotonic()
        if self._load != self._shown.load and now - self._shown.at >= self.pod.settings.timings.load_interval / 2:
            self._announce()

    def lost(self, plan: EnginePlan, why: str) -> None:
        """An engine is gone. The loss of a paused one, or of the target of a switch, is no loss of the pod."""
        if self.is_active(plan):
            self._load = Load()
            self.feed(Event.ENGINE_LOST, Detail(reasons.ENGINE_LOST, f"engine {plan.name} {why}"))
        else:
            self._announce()

    def restarted(self, plan: EnginePlan) -> None:
        """An engine process was started again."""
        self.metrics.restarted(plan.name)

    def _is_target(self, plan: EnginePlan) -> bool:
        order = self.record.order
        return order is not None and order.to in {layout.value for layout in plan.layouts}

    def _capability(self) -> Capability:
        present = self.record.layout
        own = frozenset(self.pod.residents.serving(present).plan.layouts)
        ready: frozenset[Layout] = frozenset(self.pod.residents.ready_layouts(present))
        return Capability(
            layouts=ready,
            roles=roles_of(self.pod.settings.config),
            undrained=own,
            shift_threshold_tokens=self._shift_threshold(),
            shift_floor_tokens=self.pod.residents.shift_floor_tokens,
        )

    def _shift_threshold(self) -> int | None:
        """In layout Shift: the threshold that was proven, or the one that the engine has chosen itself."""
        if self.record.layout is not Layout.SHIFT:
            return None
        proven = self.record.shift_threshold_tokens
        return self._threshold if proven is None else proven

    def _begin(self, effect: Effect) -> None:
        if self._group is None:
            raise RuntimeError(f"effect {effect.value} before the agent runs")
        self._cancel_effect()
        self._effect = self._group.create_task(self._carry_out(effect, self.record))

    async def _carry_out(self, effect: Effect, record: Record) -> None:
        signal = await _EFFECTS[effect](self.pod, record)
        if signal is not None:
            self.feed(*signal)

    def _cancel_effect(self) -> None:
        if self._effect is not None and self._effect is not asyncio.current_task():
            self._effect.cancel()
        self._effect = None

    def _replace(self, record: Record) -> None:
        """The record on disk is never older than what anyone has been told."""
        self.record = record
        self._save()
        self._announce()

    def _save(self) -> None:
        write_record(self.pod.settings.state_file, self.record)
        self.metrics.state(self.record)

    def _announce(self) -> None:
        self._shown = _Shown(self._load, self.pod.monotonic())
        self.hub.publish(self.state_line())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.pod.settings.timings.beat)
            self._announce()
