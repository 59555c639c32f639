# SPDX-License-Identifier: Apache-2.0
"""What is asked of Prometheus for a service, and what becomes of the answers to a user's queries."""

import asyncio
import math
import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from gearshift.api.v1alpha1.policyspec import Policy
from gearshift.api.vocabulary import Layout, MetricSignal, PodPhase, Role
from gearshift.operator.http import Http
from gearshift.operator.prom import SIGNALS, Prometheus, Readings, Signals
from gearshift.policy.queries import Scope, queries
from gearshift.policy.snapshot import PodView, Signal

AT = 1000.0
QUEUE, TTFT = 'gateway_queue{namespace="prod",service="chat"}', 'gateway_ttft{namespace="prod",pod=~"(chat-0)"}'
Form = dict[str, str]
Answers = Callable[[str], list[float]]


def pod(ordinal: int, role: Role = Role.UNIFIED, phase: PodPhase = PodPhase.SERVING) -> PodView:
    """A ready pod of service chat."""
    return PodView(
        f"chat-{ordinal}", f"uid-{ordinal}", ordinal, "r", role, Layout.TP, 0, phase, ready=True, created_at=0, since=0
    )


def policy(*queries: dict[str, str]) -> Policy:
    """A policy with a window of 30 s."""
    return Policy.model_validate({"queries": list(queries)})


def parts(query: str) -> list[tuple[str, dict[str, str]]]:
    """The queries that are asked together, with the labels of their series; one that is asked alone has none."""
    found = re.findall(r'label_replace\(\((.*?)\), "gearshift_query", "(\d+)", "", ""\)(?: or |$)', query)
    return [(each, {"gearshift_query": number}) for each, number in found] or [(query, {})]


async def _read(
    answers: Answers, looks: list[tuple[Policy, list[PodView], float]], *, alone: bool
) -> tuple[list[Readings], list[Form]]:
    forms: list[Form] = []

    async def query(request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        forms.append(form)
        if alone and len(parts(form["query"])) > 1:
            return web.json_response({"status": "error", "error": "too much at once"}, status=422)
        result = [
            {"metric": labels, "value": [float(form["time"]), str(value)]}
            for query, labels in parts(form["query"])
            for value in answers(query)
        ]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    app = web.Application()
    app.add_routes([web.post("/api/v1/query", query)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with Http.connect() as http:
            signals = Signals(Prometheus(http, f"http://127.0.0.1:{runner.addresses[0][1]}", 5.0))
            return [await signals.read("chat", "prod", asked, pods, at) for asked, pods, at in looks], forms
    finally:
        await runner.cleanup()


def read(
    answers: Answers, *looks: tuple[Policy, list[PodView], float], alone: bool = False
) -> tuple[list[Readings], list[Form]]:
    """Readings of each look, and the forms that Prometheus got; ``alone``: it refuses queries that come together."""
    return asyncio.run(_read(answers, list(looks), alone=alone))


def fresh(selector: str) -> str:
    """What stands in the place of a selector without a range."""
    return f"({selector} and last_over_time({selector}[30s]))"


def by(**values: list[float]) -> Answers:
    """Answers by a word in the query; 1 to all others."""
    return lambda query: next((value for word, value in values.items() if word in query), [1.0])


def test_a_query_takes_the_place_of_the_own_one_in_its_scope_only() -> None:
    """Of the whole service or of one role; all other signals are asked as ever."""
    given = policy(
        {"signal": "Waiting", "query": 'sum(gateway_queue{service="$service"})'},
        {"signal": "TtftP90", "scope": "Prefill", "query": 'max(gateway_ttft{pod=~"$pods"})'},
    )
    pods = [pod(0, Role.PREFILL), pod(1, Role.DECODE), pod(2, Role.DECODE, PodPhase.DRAINING)]
    (readings,), forms = read(by(gateway_queue=[7.0], gateway_ttft=[0.5]), (given, pods, AT))
    assert readings[Signal.WAITING, None].value == 7.0
    assert readings[Signal.WAITING, None].query == f"sum({fresh(QUEUE)})"
    assert readings[Signal.TTFT_P90, Role.PREFILL].value == 0.5
    assert readings[Signal.TTFT_P90, Role.PREFILL].query == f"max({fresh(TTFT)})"
    others = {key: reading for key, reading in readings.items() if "gateway" not in reading.query}
    assert len(readings) == 3 * len(Signal)
    assert len(others) == len(readings) - 2
    assert {reading.value for reading in others.values()} == {1.0}
    assert len(forms) == 1 + 2
    assert {form["timeout"] for form in forms} == {"5s"}


def test_no_single_number_is_unknown_and_names_the_query() -> None:
    """None, several, or none that is a number."""
    given = policy(
        {"signal": "Waiting", "query": "sum(none)"},
        {"signal": "Running", "query": "several"},
        {"signal": "KvUsage", "query": "sum(broken)"},
        {"signal": "TtftP90", "query": "sum(broken)"},
        {"signal": "PrefixHitShare", "query": "sum(percent)"},
    )
    answers = by(none=[], several=[1.0, 2.0], broken=[float("nan")], percent=[40.0])
    (readings,), _ = read(answers, (given, [pod(0)], AT))
    said: dict[Signal, Any] = {
        signal: (reading.value, reading.why, reading.quiet)
        for (signal, role), reading in readings.items()
        if role is None
    }
    assert said[Signal.WAITING] == (None, "no series of the last 30 s", False)
    assert said[Signal.RUNNING] == (None, "2 series where one was expected", False)
    assert said[Signal.KV_USAGE] == (None, "its value is nan", False)
    assert said[Signal.TTFT_P90] == (None, "no requests in the window", True)
    assert said[Signal.PREFIX_HITS] == (None, "its value is 40, which is no share of 0 to 1", False)
    assert readings[Signal.WAITING, None].query == "sum(" + fresh('none{namespace="prod"}') + ")"


def test_other_queries_are_asked_at_once_and_the_same_ones_rest() -> None:
    """Until the readings have aged."""
    before, after = policy(), policy({"signal": "Waiting", "query": "sum(mine)"})
    looks = [(before, [pod(0)], AT), (before, [pod(0)], AT + 1), (after, [pod(0)], AT + 2), (after, [pod(0)], AT + 8)]
    readings, forms = read(by(mine=[9.0]), *looks)
    assert [found[Signal.WAITING, None].value for found in readings] == [1.0, 1.0, 9.0, 9.0]
    assert len(forms) == 1 + (1 + 1) + (1 + 1)


def test_one_signal_that_is_unknown_leaves_the_others_that_are_asked_with_it() -> None:
    """No series, several, none that is a number: each is told of its own signal, with its own query."""
    answers = by(num_requests_running=[], kv_cache_usage_perc=[0.1, 0.2], time_to_first_token_seconds_bucket=[math.nan])
    (readings,), forms = read(answers, (policy(), [pod(0)], AT))
    said = {signal: reading.why for (signal, role), reading in readings.items() if role is None and reading.why}
    assert said == {
        Signal.RUNNING: "no series: too few pods report",
        Signal.KV_USAGE: "2 series where one was expected",
        Signal.TTFT_P90: "no requests in the window",
    }
    assert readings[Signal.RUNNING, None].query == queries(Scope("prod", ("chat-0",), 30.0))[Signal.RUNNING]
    assert len(forms) == 1


def test_what_is_not_answered_together_is_asked_one_by_one() -> None:
    look = (policy(), [pod(0)], AT)
    answers = by(num_requests_running=[], kv_cache_usage_perc=[0.5])
    (together,), _ = read(answers, look)
    (alone,), forms = read(answers, look, alone=True)
    assert alone == together
    assert len(forms) == 1 + len(alone)


def test_a_query_that_is_not_asked_is_unknown() -> None:
    """What the operator lets through is judged again with the pods and the window of the moment."""
    given = policy({"signal": "Waiting", "query": 'a{namespace="other"}'})
    (readings,), forms = read(by(), (given, [pod(0)], AT))
    reading = readings[Signal.WAITING, None]
    assert reading.value is None
    assert reading.why.startswith('matcher namespace="other" is not allowed')
    assert reading.query == 'a{namespace="other"}'
    assert not [form for form in forms if "other" in form["query"]]


def test_every_signal_has_its_name() -> None:
    """In both directions."""
    assert set(SIGNALS) == set(MetricSignal)
    assert set(SIGNALS.values()) == set(Signal)
