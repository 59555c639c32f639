# SPDX-License-Identifier: Apache-2.0
"""Proof that an engine is what it should be: its word, read back from scheduler and ranks, and a request it served."""

from gearshift.api import reasons
from gearshift.api.engine import EngineState
from gearshift.api.wire import Proof
from gearshift.sidecar.engine_client import EngineCallError, ProbeResult
from gearshift.sidecar.ledger import Detail, Record
from gearshift.sidecar.machine import Event
from gearshift.sidecar.pod import Pod, Signal
from gearshift.sidecar.target import Target, ordered


def contradictions(state: EngineState, target: Target) -> list[str]:
    """In what an engine's word differs from what it should say; empty when in nothing."""
    compared = (
        ("layout", state.layout.value, target.layout.value),
        ("role", state.role.value, target.role.value),
        ("epoch", state.epoch, target.epoch),
        ("ranks", state.ranks, state.world_size),
        ("paused", state.paused, False),
        ("shiftThresholdTokens", state.shift_threshold_tokens, target.threshold(state)),
    )
    return [f"{name} is {found}, not {wanted}" for name, found, wanted in compared if found != wanted]


def cause(error: EngineCallError, otherwise: str) -> str:
    """Reason of a failure: an engine that cannot be reached is about to be reported lost."""
    return reasons.ENGINE_LOST if error.unreachable else otherwise


async def verify(pod: Pod, target: Target) -> tuple[EngineState, ProbeResult]:
    """Ask the engine what it is and have it serve one request.

    Raises:
        EngineCallError: it is something else, or did not serve.
    """
    client = pod.residents.serving(target.layout).client
    state = await client.state()
    wrong = contradictions(state, target)
    if wrong:
        raise EngineCallError(f"engine {client.name}: {', '.join(wrong)}")
    probe = await client.probe(pod.settings.config.model, target.role, pod.settings.timings.probe)
    pod.observer.probed(client.name, probe.seconds)
    return state, probe


async def prove(pod: Pod, record: Record) -> Signal:
    """The effect `Verify`: the proof of the order in flight."""
    target = ordered(record)
    try:
        state, probe = await verify(pod, target)
    except EngineCallError as error:
        return Event.VERIFY_FAILED, Detail(cause(error, reasons.VERIFICATION_FAILED), str(error))
    keeper = pod.residents.serving(target.layout)
    if not keeper.up.is_set():  # its loss was no loss of the pod yet, so this is the last place that can tell
        return Event.VERIFY_FAILED, Detail(reasons.ENGINE_LOST, f"engine {keeper.plan.name} was lost after its probe")
    proof = Proof(
        epoch_before=record.epoch,
        epoch_after=state.epoch,
        ranks=state.ranks,
        expected_ranks=state.world_size,
        engine=keeper.plan.name,
        probe_tokens=probe.tokens,
        probe_seconds=round(probe.seconds, 6),
        routers=0,
        details=_details(state),
    )
    return Event.VERIFIED, Detail(proof=proof)


def _details(state: EngineState) -> dict[str, str]:
    details = {**state.details, "layout": state.layout.value, "role": state.role.value}
    if state.shift_threshold_tokens is not None:
        details["shiftThresholdTokens"] = str(state.shift_threshold_tokens)
    return details
