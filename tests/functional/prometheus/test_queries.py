# SPDX-License-Identifier: Apache-2.0
"""Every query of the policy, asked of a real Prometheus with the shipped configuration, answers the right number."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gearshift.operator.batch import joined, parted
from gearshift.policy.queries import Scope, queries
from gearshift.policy.readings import QUIET, reading
from gearshift.policy.snapshot import Reading, Signal
from gscluster.waiting import wait_for
from tests.functional.prometheus.harness import DEADLINE_SECONDS, SCRAPE_SECONDS, Exporter, Prometheus
from tests.functional.prometheus.pages import Rank, page, pod
from tools.prometheus.discover import targets

pytestmark = pytest.mark.functional
WINDOW = 6.0
NOISE = Rank(1000, 1000, 1000, 1.0, 1e6, 1e6, (0, 0, 1e4), (0, 0, 1e4))
TWO_RANKS = page(
    Rank(3, 10, 5, 0.2, 100, 40, (10, 0, 0), (0, 0, 0), cached=0.5),
    Rank(1, 20, 7, 0.6, 60, 20, (0, 10, 0), (20, 0, 0)),
)
ONE_RANK = page(Rank(2, 0, 1, 0.2, 40, 10, (0, 20, 0), (0, 20, 0)))
IDLE = page(Rank())
STEADY = page(Rank(running=7, prompt_rate=50))


@pytest.fixture(scope="module")
def exporters() -> Iterator[dict[str, Exporter]]:
    """One an engine pod; the pod ``mute`` answers no scrape."""
    found = {
        "chat-0": Exporter(TWO_RANKS), "chat-1": Exporter(ONE_RANK), "idle-0": Exporter(IDLE), "mute-0": Exporter(None),
        "reset-0": Exporter(STEADY), "noise-0": Exporter(page(NOISE)), "renamed-0": Exporter(STEADY),
    }  # fmt: skip
    yield found
    for exporter in found.values():
        exporter.close()


@pytest.fixture(scope="module")
def prometheus(exporters: dict[str, Exporter], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It scrapes them, and a pod of the same name in another namespace."""
    folder = tmp_path_factory.mktemp("prometheus")
    file: Path = folder / "targets.json"
    pods = [pod(name, exporter.port, service=name.split("-", maxsplit=1)[0]) for name, exporter in exporters.items()]
    pods.append(pod("chat-0", exporters["noise-0"].port, namespace="other"))
    pods.append(pod("chat-1", exporters["idle-0"].port, port_name="engine-1"))  # paused, beside the one that serves
    file.write_text(json.dumps(targets(pods)))
    running = Prometheus(folder, file)
    yield running
    running.close()


def scope(*pods: str) -> Scope:
    """Pods of namespace prod."""
    return Scope("prod", pods, WINDOW, SCRAPE_SECONDS)


def settled(prometheus: Prometheus, asked: Scope, signal: Signal, value: float) -> dict[Signal, Reading]:
    """Readings after ``signal`` was near ``value``: then the window holds nothing of before the first scrape."""

    def near() -> bool:
        return prometheus.read(asked)[signal].value == pytest.approx(value, rel=0.03)

    wait_for(near, f"{signal} to be {value}", timeout_seconds=DEADLINE_SECONDS)
    return prometheus.read(asked)


EXPECTED = {
    Signal.WAITING: 6.0,  # 3 + 1 and 2; deferred ones do not count
    Signal.RUNNING: 13.0,
    Signal.KV_USAGE: 0.4,  # fullest rank of each pod: 0.6 and 0.2
    Signal.REQUESTS: 40.0,
    Signal.PROMPT_TOKENS: 200.0,
    Signal.GENERATION_TOKENS: 70.0,
    Signal.TTFT_P90: 0.5 + 0.5 * (36 - 10) / 30,  # 10 of 40 a second below 0.5 s, 30 up to 1 s
    Signal.ITL_P90: 0.5 + 0.5 * (36 - 20) / 20,
    Signal.PREFIX_HITS: 50 / 200,
    Signal.TRANSFERS: 30.0,
}


def test_every_signal_of_two_pods(prometheus: Prometheus) -> None:
    """Ranks, resident engines and pods are added up; other pods, services and namespaces are not."""
    readings = settled(prometheus, scope("chat-0", "chat-1"), Signal.REQUESTS, 40)
    assert len(prometheus.labels('up{pod="chat-1"} == 1')) == 2
    values = {signal: reading.value for signal, reading in readings.items()}
    assert values == pytest.approx(EXPECTED, rel=0.05)


def test_an_idle_pod_is_known_to_be_idle(prometheus: Prometheus) -> None:
    """Zero where zero is known; its latencies and shares are quiet, not missing."""
    readings = settled(prometheus, scope("idle-0"), Signal.PROMPT_TOKENS, 0)
    assert {readings[signal].value for signal in set(Signal) - QUIET} == {0.0}
    assert all(readings[signal].quiet for signal in QUIET)


def test_a_pod_that_is_not_scraped_makes_two_unknown(prometheus: Prometheus) -> None:
    """Half of the pods say nothing of the whole."""
    settled(prometheus, scope("chat-0"), Signal.WAITING, 4)
    readings = prometheus.read(scope("chat-0", "mute-0"))
    assert {reading.value for reading in readings.values()} == {None}
    assert {reading.why for reading in readings.values()} == {"no series: too few pods report"}
    assert not any(reading.quiet for reading in readings.values())


def test_most_pods_stand_for_all(prometheus: Prometheus) -> None:
    """Four of five report; the fifth counts as their mean."""
    four = ("chat-0", "chat-1", "idle-0", "reset-0")
    readings = settled(prometheus, scope(*four, "mute-0"), Signal.WAITING, 6 * 5 / 4)
    assert readings[Signal.KV_USAGE].value == pytest.approx(0.2)


def test_a_counter_that_begins_anew_is_unknown_until_the_range_is_whole_again(
    prometheus: Prometheus, exporters: dict[str, Exporter]
) -> None:
    """What an engine counted before it restarted is lost, so its rate is no number; and right again afterwards."""
    settled(prometheus, scope("reset-0"), Signal.PROMPT_TOKENS, 50)
    exporters["reset-0"].page = page(Rank(prompt_rate=50, loss=exporters["reset-0"].seconds))
    seen = until_unknown(prometheus, scope("reset-0"), Signal.PROMPT_TOKENS)
    assert {round(value) for value in seen} <= {50}
    settled(prometheus, scope("reset-0"), Signal.PROMPT_TOKENS, 50)


def test_a_label_that_changes_makes_unknown_not_double(prometheus: Prometheus, exporters: dict[str, Exporter]) -> None:
    """For one range there are series under the old and the new label: neither sum nor mean of them is right."""
    settled(prometheus, scope("renamed-0"), Signal.RUNNING, 7)
    exporters["renamed-0"].page = page(Rank(running=7, prompt_rate=50, rename=exporters["renamed-0"].seconds))
    assert until_unknown(prometheus, scope("renamed-0"), Signal.RUNNING) <= {7.0}
    readings = settled(prometheus, scope("renamed-0"), Signal.RUNNING, 7)
    assert readings[Signal.RUNNING].samples == 1
    assert prometheus.labels('vllm:num_requests_running{pod="renamed-0",model_name="n"}')


def until_unknown(prometheus: Prometheus, asked: Scope, signal: Signal) -> set[float]:
    """Values of a signal until it has none; the reading then names its query."""
    seen: set[float] = set()

    def unknown() -> bool:
        reading = prometheus.read(asked)[signal]
        if reading.value is not None:
            seen.add(reading.value)
            return False
        assert asked.matchers in reading.query
        return True

    wait_for(unknown, f"{signal} to be unknown", timeout_seconds=DEADLINE_SECONDS)
    return seen


def test_a_pod_that_stops_answering_becomes_unknown(prometheus: Prometheus, exporters: dict[str, Exporter]) -> None:
    """As soon as its last samples have left the window, not five minutes later."""
    settled(prometheus, scope("noise-0"), Signal.WAITING, 1000)
    exporters["noise-0"].page = None

    def gone() -> bool:
        return all(reading.value is None for reading in prometheus.read(scope("noise-0")).values())

    wait_for(gone, "noise-0 to be unknown", timeout_seconds=WINDOW + 5)
    assert prometheus.labels('up{pod="noise-0"} == 0')


def test_series_carry_what_never_changes(prometheus: Prometheus) -> None:
    """Neither role nor layout; and nothing that nobody reads."""
    settled(prometheus, scope("chat-0"), Signal.WAITING, 4)
    labels = prometheus.labels('vllm:num_requests_running{namespace="prod",pod="chat-0",engine="0"}')
    assert len(labels) == 1
    assert labels[0].pop("instance").startswith("127.0.0.1:")
    assert labels[0] == {
        "__name__": "vllm:num_requests_running", "job": "gearshift-engine", "component": "engine", "engine": "0",
        "model_name": "m", "namespace": "prod", "node": "node-1", "pod": "chat-0", "service": "chat",
    }  # fmt: skip
    assert prometheus.labels('{__name__=~".+_created"}') == []


def test_a_query_that_prometheus_refuses_is_unknown(prometheus: Prometheus) -> None:
    """Its words are kept."""
    answer = prometheus.ask("sum(")
    assert answer["status"] == "error"


def test_queries_that_are_asked_together_have_the_answers_that_each_has_alone(prometheus: Prometheus) -> None:
    """Numbers, NaN, and no series."""
    settled(prometheus, scope("chat-0", "chat-1"), Signal.PROMPT_TOKENS, 200)
    scopes = (scope("chat-0", "chat-1"), scope("idle-0"), scope("mute-0"))
    asked = [(signal, query) for each in scopes for signal, query in queries(each).items()]
    at = time.time()
    together = parted(prometheus.ask(joined([query for _, query in asked]), at), len(asked))
    assert together is not None
    for (signal, query), body in zip(asked, together, strict=True):
        assert repr(reading(signal, body, query, at, WINDOW)) == repr(
            reading(signal, prometheus.ask(query, at), query, at, WINDOW)
        )
