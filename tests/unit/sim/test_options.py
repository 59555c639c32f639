# SPDX-License-Identifier: Apache-2.0
"""The command line: defaults that fit together, and errors that name the flag and the value."""

import pytest

from gearshift.api.vocabulary import Layout, Role
from gearshift.sim.engine.faults import Fault
from gearshift.sim.engine.options import parse_options

LINE = """
    --host 127.0.0.1 --port 0 --model m --accelerators 4 --layout Shift --role Decode --profile tiny
    --sequence-parallel-size 2 --shift-threshold-tokens 99 --speed 10 --startup 1m30s --max-model-len 2048
    --fault lose-kv --fault slow-start --side-channel-port 5600 --side-channel-host 10.0.0.1
"""


def test_defaults_are_a_pod_of_eight() -> None:
    options = parse_options([])
    assert (options.arrangement.layout, options.arrangement.accelerators) == (Layout.TP, 8)
    assert options.arrangement.sequence_parallel_size == 8
    assert options.arrangement.shift_threshold_tokens > 0
    assert options.layouts == tuple(Layout)
    assert options.max_model_len_tokens == 131_072
    assert options.startup_seconds == 140.0


def test_flags_are_taken() -> None:
    options = parse_options(LINE.split())
    assert options.arrangement.layout is Layout.SHIFT
    assert (options.arrangement.sequence_parallel_size, options.arrangement.shift_threshold_tokens) == (2, 99)
    assert (options.role, options.profile.name, options.speed) == (Role.DECODE, "tiny", 10.0)
    assert (options.startup_seconds, options.max_model_len_tokens) == (90.0, 2048)
    assert options.faults == {Fault.LOSE_KV, Fault.SLOW_START}
    assert (options.side_channel_host, options.side_channel_port) == ("10.0.0.1", 5600)


def test_start_up_follows_the_speed() -> None:
    assert parse_options(["--speed", "10", "--layout", "DP"]).startup_seconds == pytest.approx(13.2)


def test_layouts_without_room_for_a_sequence_are_not_served() -> None:
    options = parse_options(["--max-model-len", "500000"])
    assert options.layouts == (Layout.TP, Layout.SP, Layout.SHIFT)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--layout EP", "argument --layout: 'EP' is not one of TP, SP, DP, Shift"),
        ("--role Both", "argument --role: 'Both' is not one of Unified, Prefill, Decode"),
        ("--profile h300", "argument --profile: 'h300' is not a profile; known: llama-3-70b-fp8-h200, tiny"),
        ("--accelerators 0", "argument --accelerators: 0 is not between 1 and 1024"),
        ("--accelerators x", "argument --accelerators: 'x' is not a number"),
        ("--sequence-parallel-size 3", "argument --sequence-parallel-size: sequence parallel size 3 does not divide"),
        ("--port 70000", "argument --port: 70000 is not between 0 and 65535"),
        ("--speed 0", "argument --speed: 0 is not between 0.01 and 10000"),
        ("--speed nan", "argument --speed: nan is not between"),
        ("--startup soon", "argument --startup: 'soon' is not a duration such as 90s"),
        ("--max-model-len 0", "argument --max-model-len: 0 is not between"),
        ("--layout DP --max-model-len 500000", "argument --max-model-len: 500000 tokens do not fit the 153503 tokens"),
        ("--fault burn", "argument --fault: 'burn' is not one of says-yes-and-does-nothing"),
        ("--colour red", "unrecognized arguments: --colour red"),
    ],
)
def test_a_bad_value_is_named_with_its_flag(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(line.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
