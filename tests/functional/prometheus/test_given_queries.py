# SPDX-License-Identifier: Apache-2.0
"""Queries of users, asked of a real Prometheus that holds series of several namespaces."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gearshift.api.v1alpha1.policyspec import Policy
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.operator.http import Http
from gearshift.operator.prom import Prometheus as Client
from gearshift.operator.prom import Readings, Signals
from gearshift.operator.promql import pinned
from gearshift.policy.queries import Scope
from gearshift.policy.snapshot import PodView, Signal
from gscluster.waiting import wait_for
from tests.functional.prometheus.harness import DEADLINE_SECONDS, SCRAPE_SECONDS, Exporter, Prometheus
from tests.functional.prometheus.pages import Rank, page, pod
from tools.prometheus.discover import targets

pytestmark = pytest.mark.functional
WINDOW = 6.0
RUNNING, OTHERS = 7.0, 1000.0
LOOSE = "vllm:num_requests_running"


def dated(running: float) -> Exporter:
    """An exporter whose samples carry their time, which is that of its start for ever: a source that has died."""
    stamp = round(time.time() * 1000)
    return Exporter(lambda _: f'vllm:num_requests_running{{model_name="m",engine="0"}} {running} {stamp}\n')


@pytest.fixture(scope="module")
def exporters() -> Iterator[list[Exporter]]:
    """Of namespace prod, of namespace other, and one of prod that has died."""
    found = [Exporter(page(Rank(running=RUNNING))), Exporter(page(Rank(running=OTHERS))), dated(3)]
    yield found
    for exporter in found:
        exporter.close()


@pytest.fixture(scope="module")
def prometheus(exporters: list[Exporter], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It scrapes them; the pods of both namespaces have the same names."""
    folder = tmp_path_factory.mktemp("prometheus")
    file: Path = folder / "targets.json"
    pods = [
        pod("chat-0", exporters[0].port),
        pod("chat-0", exporters[1].port, namespace="other"),
        pod("dead-0", exporters[2].port, service="dead"),
    ]
    file.write_text(json.dumps(targets(pods)))
    with contextlib.closing(Prometheus(folder, file)) as running:
        wait_for(
            lambda: len(running.labels('vllm:num_requests_running{pod="chat-0"}')) == 2,
            "both namespaces to be scraped",
            timeout_seconds=DEADLINE_SECONDS,
        )
        yield running


def read(prometheus: Prometheus, service: str, **queries: str) -> Readings:
    """Readings of a service with one pod and these queries, by signal."""
    view = PodView(
        f"{service}-0", "uid", 0, "r", Role.UNIFIED, Layout.TP, 0, PodPhase.SERVING, ready=True, created_at=0, since=0
    )
    entries = [{"signal": signal, "query": query} for signal, query in queries.items()]
    policy = Policy.model_validate({"window": f"{WINDOW:.0f}s", "queries": entries})

    async def ask() -> Readings:
        async with Http.connect() as http:
            signals = Signals(Client(http, prometheus.url, SCRAPE_SECONDS))
            return await signals.read(service, "prod", policy, [view], time.time())

    return asyncio.run(ask())


def value(answer: object) -> float | None:
    """The one number of an answer of Prometheus; None without one."""
    assert isinstance(answer, dict)
    found = [float(entry["value"][1]) for entry in answer["data"]["result"]]
    assert len(found) <= 1, found
    return found[0] if found else None


def answered(look: Callable[[], float | None]) -> float:
    """The first answer: a busy machine may scrape nothing for a window."""
    found: list[float] = []

    def known() -> bool:
        found.extend(number for number in [look()] if number is not None)
        return bool(found)

    wait_for(known, "an answer", timeout_seconds=DEADLINE_SECONDS)
    return found[0]


def test_a_query_takes_the_place_of_the_own_one(prometheus: Prometheus) -> None:
    """Its answer is the reading; signals without one, and other scopes, are read as ever."""
    mine = 'sum(avg_over_time(vllm:num_requests_running{pod=~"$pods",service="$service"}[$window])) * 3'
    expected = {(Signal.RUNNING, None): 3 * RUNNING, (Signal.RUNNING, Role.UNIFIED): RUNNING, (Signal.WAITING, None): 0}
    for key, number in expected.items():
        assert answered(lambda key=key: read(prometheus, "chat", Running=mine)[key].value) == number  # type: ignore[misc]


@pytest.mark.parametrize(
    "query",
    [
        f"max({LOOSE})",
        f"max({{__name__='{LOOSE}'}})",
        f'max({LOOSE}{{pod=~".*"}})',
        f"max_over_time(max({LOOSE})[10s:1s])",
        f"max(max_over_time({LOOSE}[$window]))",
        f"max({LOOSE} or {LOOSE} offset 1s)",
        f'max(label_replace({LOOSE}, "namespace", "prod", "namespace", "other"))',
        f"max(topk(scalar(count({LOOSE})), {LOOSE}))",
        f"max({LOOSE} and on (pod) {LOOSE})",
        f'max({LOOSE}{{pod!="\\"}} or {LOOSE}{{"}})',
        f"quantile(1, {LOOSE}) # {LOOSE}",
    ],
)
def test_no_query_reads_another_namespace(prometheus: Prometheus, query: str) -> None:
    """Asked as it stands, each of them tells what happens there; asked for a service, none does."""
    unpinned = query.replace("$window", "6s")

    def there() -> bool:
        return (value(prometheus.ask(unpinned)) or 0) >= OTHERS

    def own() -> bool:
        """The steps of a subquery may be older than the first sample of the live source."""
        reading = read(prometheus, "chat", Running=query)[Signal.RUNNING, None]
        assert reading.value is None or reading.value <= RUNNING, reading
        return reading.value == RUNNING

    wait_for(there, "the other namespace to be seen", timeout_seconds=DEADLINE_SECONDS)
    wait_for(own, "what the own namespace has", timeout_seconds=DEADLINE_SECONDS)


def test_a_query_that_names_another_namespace_is_not_asked(prometheus: Prometheus) -> None:
    """It is refused before; were it not, it would still not be asked."""
    reading = read(prometheus, "chat", Running=f'max({LOOSE}{{namespace="other"}})')[Signal.RUNNING, None]
    assert reading.value is None
    assert reading.why.startswith('matcher namespace="other" is not allowed')


def test_samples_of_a_source_that_has_died_are_unknown(prometheus: Prometheus) -> None:
    """Prometheus shows them for five more minutes, with the time of the question."""
    query = f'sum({LOOSE}{{service="dead"}})'

    def unknown() -> bool:
        return read(prometheus, "dead", Running=query)[Signal.RUNNING, None].value is None

    wait_for(unknown, "the old sample to be unknown", timeout_seconds=DEADLINE_SECONDS)
    assert value(prometheus.ask(query)) == 3
    reading = read(prometheus, "dead", Running=query)[Signal.RUNNING, None]
    assert reading.why == "no series of the last 6 s"
    assert f'{LOOSE}{{namespace="prod",service="dead"}}' in reading.query


@pytest.mark.parametrize(
    "query",
    [
        'histogram_quantile(0.9, sum by (le) (rate(a_bucket{pod=~"$pods"}[$window]))) and on () (count(a) > 1)',
        "-(a ^ 2 ^ 3 % 4) atan2 b",
        "a == bool 1 != bool scalar(b)",
        "count_values without (pod) ('its', a)",
        "a * on (pod, engine) group_left (node, model) b / ignoring (x) group_right () c",
        r'label_join(label_replace(a, "b", "$1-\"\\\n\u00e9", "c", "(.*)\\.x"), "d", ",", "e", "f")',
        "max_over_time(deriv(a[30s])[5m:15s] offset 90s) - 0x1F * 1e-7 + Inf",
        "sum without (pod) (stddev_over_time(a[1m30s] offset 1500ms)) unless on () absent(b)",
        "a{b=~`x\\\\d+`,c!~'\"|y'} > NaN",
        "clamp(a, -1, +Inf) or vector(time() % 3600)",
    ],
)
def test_what_is_sent_is_promql(prometheus: Prometheus, query: str) -> None:
    """Prometheus takes the text that the parser's printer makes."""
    sent = pinned(query, "chat", Scope("prod", ("chat-0",), WINDOW))
    assert prometheus.ask(sent)["status"] == "success", sent
