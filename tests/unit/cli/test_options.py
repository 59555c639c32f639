# SPDX-License-Identifier: Apache-2.0
"""What may be written on the command line, and what is said of the rest: exit code 2, and the bad value."""

import argparse
from datetime import UTC, datetime, timedelta

import pytest

from gearshift.cli import kubectl, options
from gearshift.cli.__main__ import main as gearshift
from gearshift.cli.errors import UsageError
from gearshift.cli.output import age, duration, span, table
from tests.unit.cli.bodies import NOW


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shift", "chat", "XX"], "argument LAYOUT: 'XX' is not a layout; known: TP, SP, DP, Shift"),
        (["flip", "chat", "chat-0"], "'chat-0' is not a role; known: Unified, Prefill, Decode"),
        (["shift", "chat", "DP", "--for", "soon"], "argument --for: 'soon' is not a duration such as 90s"),
        (["shift", "chat", "DP", "--for", "10ms"], "argument --for: '10ms' is shorter than 1s"),
        (["shift", "chat", "DP", "--until", "noon"], "argument --until: 'noon' is not a time"),
        (["shift", "chat", "DP", "--until", "2030-01-01T00:00:00"], "names no time zone"),
        (["shift", "chat", "DP", "--for", "5m", "--until", "2030-01-01T00:00:00Z"], "not allowed with"),
        (["shift", "chat", "DP", "--dry-run", "client"], "invalid choice: 'client'"),
        (["status", "chat", "-o", "table"], "invalid choice: 'table'"),
        (["approve"], "the following arguments are required: NAME"),
        (["undo", "chat"], "invalid choice: 'undo'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    for main in (kubectl.main, gearshift):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "chat", "-A"], "NAME 'chat' and --all-namespaces exclude each other"),
        (["hold", "chat", "--reason", "false"], "--reason: 'false' would mean that the service is not held"),
        (["hold", "chat", "--reason", " FALSE "], "--reason: ' FALSE ' would mean that the service is not held"),
        (["hold", "chat", "--reason", " "], "--reason: ' ' would mean that the service is not held"),
        (["hold", "chat", "--reason", "x" * 201], "--reason: 201 characters, 200 are read"),
        (
            ["shift", "chat", "DP", "--until", "2020-01-01T00:00:00Z"],
            "--until: 2020-01-01T00:00:00+00:00 is in the past",
        ),
        (["approve", "chat", "--for", "99999999999999h"], "--for: "),
    ],
)
def test_values_that_make_no_sense_are_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"kubectl gearshift: {message}") or message in said
    assert said.count("\n") == 1


def expiry(seconds: float = 1800.0, until: datetime | None = None) -> datetime:
    return options.expiry(argparse.Namespace(seconds=seconds, until=until), NOW)


def test_an_order_ends_in_whole_seconds_of_utc() -> None:
    assert expiry() == NOW + timedelta(minutes=30)
    assert expiry(until=options.moment("2026-12-01T15:00:00.5+02:00")) == datetime(2026, 12, 1, 13, tzinfo=UTC)
    with pytest.raises(UsageError, match="in the past"):
        expiry(until=NOW)


def test_options_of_the_cluster_may_stand_on_either_side_of_the_command() -> None:
    parser = argparse.ArgumentParser()
    options.add_target(parser)
    kubectl.add_to(parser.add_subparsers())
    for words in (["-n", "a", "status", "chat"], ["status", "chat", "-n", "a"], ["-n", "b", "status", "-n", "a"]):
        assert parser.parse_args(words).namespace == "a"
    assert not hasattr(parser.parse_args(["status"]), "namespace")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (190, "3m10s"), (1500, "25m"), (10_800, "3h"),
        (19_200, "5h20m"), (36_000, "10h"), (259_200, "3d"),
    ],
)  # fmt: skip
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words
    assert age(NOW, NOW + timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(("milliseconds", "words"), [(None, "-"), (250, "250ms"), (2140, "2.1s"), (95_000, "95s")])
def test_durations(milliseconds: int | None, words: str) -> None:
    assert duration(milliseconds) == words


def test_tables_have_no_blanks_at_the_end() -> None:
    assert table(["A", "LONG"], [["x", ""], ["yy", "z"]]) == ["A    LONG", "x", "yy   z"]
