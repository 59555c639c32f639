# SPDX-License-Identifier: Apache-2.0
"""What counts as proof, and what an engine must be told."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gearshift.api.engine import EngineState, RoleKnobs
from gearshift.api.vocabulary import Layout, Role
from gearshift.sidecar.engine_client import EngineCallError, ProbeResult, probe_body, read_probe
from gearshift.sidecar.machine import Event
from gearshift.sidecar.switching import needs_role
from gearshift.sidecar.target import Target
from gearshift.sidecar.verification import contradictions, prove


def engine_state(**changes: Any) -> EngineState:
    base = {
        "layout": "DP",
        "layouts": ["DP"],
        "role": "Decode",
        "epoch": 5,
        "paused": False,
        "ranks": 8,
        "world_size": 8,
        "knobs": {"max_num_seqs": 64},
    }
    return EngineState.model_validate({**base, **changes})


def test_an_engine_that_is_as_wanted_contradicts_nothing() -> None:
    assert contradictions(engine_state(), Target(Layout.DP, Role.DECODE, 5)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layout": "TP"}, "layout is TP, not DP"),
        ({"role": "Prefill"}, "role is Prefill, not Decode"),
        ({"epoch": 4}, "epoch is 4, not 5"),
        ({"epoch": 6}, "epoch is 6, not 5"),
        ({"ranks": 4}, "ranks is 4, not 8"),
        ({"paused": True}, "paused is True, not False"),
    ],
)
def test_every_difference_is_a_contradiction(changes: dict[str, Any], words: str) -> None:
    assert contradictions(engine_state(**changes), Target(Layout.DP, Role.DECODE, 5)) == [words]


@pytest.mark.parametrize(
    ("held", "asked", "words"),
    [
        (64, 64, []),
        (64, None, []),
        (None, None, []),
        (64, 65, ["shiftThresholdTokens is 64, not 65"]),
        (None, 0, ["shiftThresholdTokens is None, not 0"]),
    ],
)
def test_the_threshold_of_shift_is_proven_when_one_was_asked_for(
    held: int | None, asked: int | None, words: list[str]
) -> None:
    state = engine_state(layout="Shift", shift_threshold_tokens=held)
    assert contradictions(state, Target(Layout.SHIFT, Role.DECODE, 5, asked)) == words


def test_another_layout_has_no_threshold_to_prove() -> None:
    assert contradictions(engine_state(), Target(Layout.DP, Role.DECODE, 5, 64)) == []


@pytest.mark.parametrize(
    ("target", "knobs", "needed"),
    [
        (Target(Layout.DP, Role.DECODE, 5), RoleKnobs(), False),
        (Target(Layout.DP, Role.DECODE, 5), RoleKnobs(max_num_seqs=64), False),
        (Target(Layout.DP, Role.DECODE, 5), RoleKnobs(max_num_seqs=32), True),
        (Target(Layout.DP, Role.DECODE, 5), RoleKnobs(max_num_batched_tokens=512), True),
        (Target(Layout.DP, Role.PREFILL, 5), RoleKnobs(), True),
        (Target(Layout.DP, Role.DECODE, 6), RoleKnobs(), True),
    ],
)
def test_an_engine_is_told_its_role_only_when_something_differs(target: Target, knobs: RoleKnobs, needed: bool) -> None:
    assert needs_role(engine_state(), target, knobs) is needed


@pytest.mark.parametrize("answer", [None, [], {}, {"usage": {}}, {"usage": {"completion_tokens": 0}}, {"usage": 1}])
def test_an_answer_without_a_token_is_no_proof(answer: Any) -> None:
    with pytest.raises(EngineCallError, match="engine tp answered the probe without a token"):
        read_probe("tp", Role.UNIFIED, answer)


@pytest.mark.parametrize("role", list(Role))
def test_a_prefill_must_hand_its_kv_over(role: Role) -> None:
    answer = {"usage": {"completion_tokens": 1}}
    if role is Role.PREFILL:
        with pytest.raises(EngineCallError, match="without kv_transfer_params"):
            read_probe("tp", role, answer)
    else:
        assert read_probe("tp", role, answer) == 1
    assert read_probe("tp", role, {**answer, "kv_transfer_params": {"remote_engine_id": "x"}}) == 1


@pytest.mark.parametrize("role", list(Role))
def test_a_probe_ends_by_length_and_asks_for_what_its_role_does(role: Role) -> None:
    body = probe_body("tiny", role)
    assert (body["model"], body["max_tokens"], body["ignore_eos"]) == ("tiny", 1, True)
    assert ("kv_transfer_params" in body) == (role is Role.PREFILL)


async def test_an_engine_that_was_lost_after_its_probe_proves_nothing(make_record: Any, make_order: Any) -> None:
    """While it is only the target of a switch, nobody else would notice."""
    keeper = SimpleNamespace(client=AnsweringClient(), up=asyncio.Event(), plan=SimpleNamespace(name="dp"))
    pod: Any = SimpleNamespace(
        residents=SimpleNamespace(serving=lambda _layout: keeper),
        settings=SimpleNamespace(config=SimpleNamespace(model="tiny"), timings=SimpleNamespace(probe=1.0)),
        observer=SimpleNamespace(probed=lambda _engine, _seconds: None),
    )
    record = make_record(phase="Verifying", order=make_order(), role="Decode")
    event, detail = await prove(pod, record)
    assert (event, detail.reason) == (Event.VERIFY_FAILED, "EngineLost")
    keeper.up.set()
    assert (await prove(pod, record))[0] is Event.VERIFIED


class AnsweringClient:
    """An engine that is as ordered and answers its probe."""

    name = "dp"

    async def state(self) -> EngineState:
        return engine_state()

    async def probe(self, _model: str, _role: Role, _timeout: float) -> ProbeResult:
        return ProbeResult(tokens=1, seconds=0.1)
