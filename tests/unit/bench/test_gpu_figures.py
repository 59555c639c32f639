# SPDX-License-Identifier: Apache-2.0
"""From records of an engine to figures, lines and the page."""

from typing import Any
from xml.etree import ElementTree as ET

from bench.gpu.figures import figures, incomparable, lines, windows
from bench.gpu.page import page, plots
from bench.gpu.store import Record

PEAK = {"input_tokens": 4096, "output_tokens": 250, "seconds": 200.0}


def start(seconds: float, **more: Any) -> Record:
    values = {"readySeconds": seconds + 10, "phases": {}, "weightsBytes": {"TP": 2**30}, "kvTokens": 1000}
    return {"part": "start", "settings": {"ranks": 4}, "seconds": seconds, **values, **more}


def latency(ttft: float) -> Record:
    return {"part": "latency", "settings": {"repeats": 5}, "times": {"4096": {"ttft_ms": ttft, "tpot_ms": 9.0}}}


def peak(rate: float, **settings: Any) -> Record:
    return {"part": "peak", "settings": PEAK | settings, "rounds": [[48, rate / 2], [96, rate]], "flat": True}


def burst(*requests: tuple[float, float, float]) -> Record:
    tokens = [0] * 10 + [100] * 10 + [0] * 4
    return {"part": "burst", "settings": {}, "requests": list(requests), "bin_seconds": 0.5, "tokens": tokens}


def test_the_reference_is_the_first_layout() -> None:
    found = lines("m", 4, {"TP": [start(100), latency(200), peak(20000)], "Shift": [start(150), latency(130)]})
    by_name = {line["name"]: line for line in found}
    assert by_name["m.x4.Shift.ttft.4096"] == {
        "name": "m.x4.Shift.ttft.4096",
        "value": 130,
        "unit": "ms",
        "reference": 200,
        "ratio": 0.65,
    }
    assert by_name["m.x4.TP.throughput"]["ratio"] == 1.0
    assert by_name["m.x4.TP.throughput"]["value"] == 20000


def test_what_the_reference_lacks_has_no_ratio() -> None:
    shift = start(150, phases={"load": 9.5}, weightsBytes={"TP": 2**30, "SP": 2**32}, thresholdTokens=1646)
    found = {line["name"]: line for line in lines("m", 2, {"TP": [start(100)], "Shift": [shift]})}
    assert found["m.x2.Shift.start.load"]["ratio"] is None
    assert found["m.x2.Shift.weights.SP"]["value"] == 4.0
    assert found["m.x2.Shift.threshold"]["value"] == 1646


def test_a_second_start_is_the_warm_one_and_the_newest_part_counts() -> None:
    found = figures([start(212), latency(140), start(90), start(77), latency(130)])
    assert found["start"].items() >= {"start": (212, "s"), "start.warm": (77, "s"), "ready.warm": (87, "s")}.items()
    assert found["latency"].items() >= {"ttft.4096": (130, "ms")}.items()
    assert "start.warm" not in figures([start(212)])["start"]


def test_other_settings_are_not_compared() -> None:
    other = {"TP": [latency(2), peak(2)], "Shift": [latency(1), peak(2, input_tokens=2048)]}
    found = {line["name"]: line["ratio"] for line in lines("m", 4, other)}
    assert (found["m.x4.Shift.ttft.4096"], found["m.x4.Shift.throughput"]) == (0.5, None)
    (why,) = incomparable(other)
    assert why.startswith("part peak of Shift was measured with {'input_tokens': 2048")


def test_how_long_a_peak_was_sought_does_not_matter() -> None:
    other = {"TP": [peak(2)], "Shift": [peak(1, seconds=60.0)]}
    assert incomparable(other) == []
    assert {line["name"]: line["ratio"] for line in lines("m", 4, other)}["m.x4.Shift.throughput"] == 0.5


def test_the_bursty_trace_gives_medians_and_its_best_window() -> None:
    record = burst((0.0, 100.0, 9.0), (1.0, 300.0, 10.0), (2.0, 200.0, 50.0))
    assert figures([record])["burst"] == {
        "burst.requests": (3, "requests"),
        "burst.ttft": (200.0, "ms"),
        "burst.ttft_p90": (280.0, "ms"),
        "burst.tpot": (10.0, "ms"),
        "burst.throughput": (200.0, "tokens/s"),
    }
    assert windows(record)[0] == (5.0, 0.0)
    assert windows(record)[-1] == (12.0, 120.0)


def test_a_trace_shorter_than_a_window_still_has_one() -> None:
    record = burst((0.0, 1.0, 1.0)) | {"tokens": [50, 50]}
    assert windows(record) == [(1.0, 20.0)]


def test_the_page_has_a_plot_for_each_part_with_every_layout() -> None:
    results = {
        layout: [start(100), latency(200), peak(20000), burst((0.0, 100.0, 9.0), (1.0, 300.0, 10.0))]
        for layout in ("TP", "DP", "Shift")
    }
    found = plots(results)
    assert len(found) == 5
    for _, svg in found:
        texts = {each.text for each in ET.fromstring(svg).iter("text")}
        assert texts >= {"TP", "DP", "Shift"}
    assert "m.x4.Shift.burst.ttft" in page("<title>", results, lines("m", 4, results))
    assert "&lt;title&gt;" in page("<title>", {}, [])


def test_no_figure_is_made_up() -> None:
    assert figures([]) == {}
    assert lines("m", 4, {}) == []
    assert incomparable({}) == []
