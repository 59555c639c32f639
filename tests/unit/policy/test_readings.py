# SPDX-License-Identifier: Apache-2.0
"""Prometheus' answers: a number or unknown, never a guess."""

from typing import Any

import pytest

from gearshift.policy.readings import reading
from gearshift.policy.snapshot import Reading, Signal

AT = 1000.0


def vector(*samples: tuple[float, str]) -> dict[str, Any]:
    """A successful answer of an instant query."""
    result = [{"metric": {}, "value": [when, value]} for when, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def read(body: Any, signal: Signal = Signal.WAITING) -> Reading:
    """Reading at `AT`, at most 30 s old."""
    return reading(signal, body, "q", AT, 30)


def test_a_number_is_a_value() -> None:
    """Zero is one too."""
    assert read(vector((AT - 30, "2.5"))) == Reading(2.5, AT - 30, 1, "q")
    assert read(vector((AT, "0"))).value == 0
    assert read({"status": "success", "data": {"resultType": "scalar", "result": [AT, "3"]}}).value == 3


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (vector(), "no series: too few pods report"),
        (vector((AT, "1"), (AT, "2")), "2 series where one was expected"),
        (vector((AT, "NaN")), "its value is nan"),
        (vector((AT, "+Inf")), "its value is inf"),
        (vector((AT, "-Inf")), "its value is -inf"),
        (vector((AT - 31, "1")), "newest sample is 31 s old, 30 s are allowed"),
        (vector((AT + 31, "1")), "newest sample is -31 s old, 30 s are allowed"),
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, "Prometheus refused: parse error"),
        ("<html>", "answer is str, not an object"),
        (None, "answer is NoneType, not an object"),
        ({"status": "success"}, "answer is not an instant vector: KeyError('data')"),
        ({"status": "success", "data": None}, "answer is not an instant vector"),
        ({"status": "success", "data": {"resultType": "matrix", "result": [{"values": []}]}}, "answer is not"),
        ({"status": "success", "data": {"resultType": "vector", "result": [{"value": [AT, "x"]}]}}, "answer is not"),
    ],
)
def test_all_else_is_unknown_and_says_why(body: Any, why: str) -> None:
    """With the query at hand, and not quiet."""
    result = read(body)
    assert result.value is None
    assert result.why.startswith(why)
    assert result.query == "q"
    assert not result.quiet


@pytest.mark.parametrize(
    ("signal", "quiet"),
    [(Signal.TTFT_P90, True), (Signal.ITL_P90, True), (Signal.KV_USAGE, False), (Signal.RUNNING, False)],
)
def test_a_quantile_over_no_requests_is_quiet(signal: Signal, quiet: bool) -> None:
    """The series are there and fresh; only nothing happened. Other signals are never NaN for that reason."""
    result = read(vector((AT, "NaN")), signal)
    assert (result.value, result.quiet) == (None, quiet)
    assert not read(vector((AT - 99, "NaN")), signal).quiet
