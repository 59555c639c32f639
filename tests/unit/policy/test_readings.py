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


@pytest.mark.parametrize(
    ("signal", "said", "value", "why"),
    [
        (Signal.PREFIX_HITS, "1", 1.0, ""),
        (Signal.PREFIX_HITS, "1.02", 1.0, ""),
        (Signal.PREFIX_HITS, "1.03", None, "its value is 1.03, which is no share of 0 to 1"),
        (Signal.KV_USAGE, "1.0000001", 1.0, ""),
        (Signal.KV_USAGE, "87", None, "its value is 87, which is no share of 0 to 1"),
        (Signal.RUNNING, "87", 87.0, ""),
        (Signal.RUNNING, "-1", None, "its value is -1"),
        (Signal.PREFIX_HITS, "-0.5", None, "its value is -0.5"),
    ],
)
def test_what_no_signal_can_be_is_unknown(signal: Signal, said: str, value: float | None, why: str) -> None:
    """A share may be a little above 1, since its two counters are not read at one instant; it is not believed then."""
    result = read(vector((AT, said)), signal)
    assert (result.value, result.why) == (value, why)


def test_no_series_has_the_words_of_who_asked() -> None:
    """Own queries answer with nothing when too few pods report; a user's for other reasons."""
    assert (
        reading(Signal.WAITING, vector(), "q", AT, 30, "no series of the last 30 s").why == "no series of the last 30 s"
    )
