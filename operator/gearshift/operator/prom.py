# SPDX-License-Identifier: Apache-2.0
"""Reads signals from Prometheus. What can't be known is a reading without value that says why; never a zero."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gearshift.api.v1alpha1.policyspec import Policy, SignalQuery
from gearshift.api.vocabulary import MetricSignal, Role
from gearshift.operator.batch import joined, parted
from gearshift.operator.http import Http, HttpError
from gearshift.operator.promql import QueryError, pinned
from gearshift.policy.queries import Scope, queries
from gearshift.policy.readings import NO_SERIES, reading
from gearshift.policy.snapshot import PodView, Reading, Signal

Key = tuple[Signal, Role | None]
Readings = dict[Key, Reading]
SIGNALS: Final = {
    MetricSignal.WAITING: Signal.WAITING,
    MetricSignal.RUNNING: Signal.RUNNING,
    MetricSignal.KV_USAGE: Signal.KV_USAGE,
    MetricSignal.REQUEST_RATE: Signal.REQUESTS,
    MetricSignal.PROMPT_TOKEN_RATE: Signal.PROMPT_TOKENS,
    MetricSignal.GENERATION_TOKEN_RATE: Signal.GENERATION_TOKENS,
    MetricSignal.PREFIX_HIT_SHARE: Signal.PREFIX_HITS,
    MetricSignal.TRANSFERS_WAITING: Signal.TRANSFERS,
    MetricSignal.TTFT_P90: Signal.TTFT_P90,
    MetricSignal.ITL_P90: Signal.ITL_P90,
}
_FRESH_SECONDS = 5.0  # readings are means over a window: asking more often tells nothing new


@dataclass(frozen=True, slots=True)
class Question:
    """One query of a signal: Gearshift's own, or one that the user gave."""

    query: str
    given: bool = False
    problem: str = ""  # why it is not asked


class Prometheus:
    """Client of one Prometheus server; without an address every reading is unknown."""

    def __init__(self, http: Http, url: str | None, scrape_seconds: float) -> None:
        self._http = http
        self._url = None if url is None else url.rstrip("/")
        self.scrape_seconds = scrape_seconds

    async def read(self, signal: Signal, asked: Question, at: float, max_age_seconds: float) -> Reading:
        """Value of a query that yields one number.

        ``at`` is the evaluation time in seconds since the epoch; a sample older than ``max_age_seconds`` is unknown.
        """
        if self._url is None:
            return Reading(None, query=asked.query, why="the operator runs without --prometheus-url")
        if asked.problem:
            return Reading(None, query=asked.query, why=asked.problem)
        try:
            body = await self._answer(asked.query, at)
        except HttpError as problem:
            return Reading(None, query=asked.query, why=str(problem))
        no_series = f"no series of the last {max_age_seconds:.0f} s" if asked.given else NO_SERIES
        return reading(signal, body, asked.query, at, max_age_seconds, no_series)

    async def read_all(self, asked: Mapping[Key, Question], at: float, max_age_seconds: float) -> Readings:
        """Values of Gearshift's own queries and of those that the user gave.

        The former are asked together. What Prometheus can't answer together is asked one by one, so that one query
        that it refuses leaves only its own signal unknown; and so are those of a user, which may be of any kind.
        """
        own = {key: question for key, question in asked.items() if not question.given}
        found = await self._read_together(own, at, max_age_seconds)
        left = {key: question for key, question in asked.items() if key not in found}
        answers = await asyncio.gather(*(self.read(key[0], each, at, max_age_seconds) for key, each in left.items()))
        found |= dict(zip(left, answers, strict=True))
        return {key: found[key] for key in asked}

    async def _read_together(self, asked: Mapping[Key, Question], at: float, max_age_seconds: float) -> Readings:
        """Readings of one request; none when Prometheus does not answer the queries together."""
        if self._url is None or len(asked) < 2:
            return {}
        try:
            body = await self._answer(joined([question.query for question in asked.values()]), at)
        except HttpError as problem:
            return {key: Reading(None, query=question.query, why=str(problem)) for key, question in asked.items()}
        bodies = parted(body, len(asked)) or []
        return {
            key: reading(key[0], part, question.query, at, max_age_seconds)
            for (key, question), part in zip(asked.items(), bodies, strict=False)
        }

    async def _answer(self, query: str, at: float) -> Any:
        """Body of the answer to a query. Raises `HttpError`."""
        form = {"query": query, "time": f"{at:.3f}", "timeout": "5s"}
        answer = await self._http.call("POST", f"{self._url}/api/v1/query", form=form, timeout_seconds=6.0)
        return answer.body


class Signals:
    """All signals of one service, asked anew when they have aged or when pods changed roles."""

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus
        self._asked: tuple[dict[Role | None, Scope], list[SignalQuery]] = ({}, [])
        self._readings: Readings = {}
        self._read_at = 0.0

    async def read(self, service: str, namespace: str, policy: Policy, pods: Iterable[PodView], at: float) -> Readings:
        """Readings by signal and role; none for a role without serving pods."""
        window = policy.window.seconds
        scopes = self._scoped(namespace, [pod for pod in pods if pod.serving], window)
        if (scopes, policy.queries) == self._asked and at - self._read_at < _FRESH_SECONDS:
            return self._readings
        asked = {key: question for role, scope in scopes.items() for key, question in _own(role, scope).items()}
        asked |= _given(policy.queries, service, scopes)
        age = max(window, 4 * self._prometheus.scrape_seconds)
        self._readings = await self._prometheus.read_all(asked, at, age)
        self._asked, self._read_at = (scopes, policy.queries), at
        return self._readings

    def _scoped(self, namespace: str, pods: list[PodView], window_seconds: float) -> dict[Role | None, Scope]:
        groups: dict[Role | None, list[str]] = {}
        for pod in sorted(pods, key=lambda pod: pod.name):
            groups.setdefault(None, []).append(pod.name)
            groups.setdefault(pod.role, []).append(pod.name)
        scrape = self._prometheus.scrape_seconds
        return {role: Scope(namespace, tuple(names), window_seconds, scrape) for role, names in groups.items()}


def _own(role: Role | None, scope: Scope) -> dict[Key, Question]:
    return {(signal, role): Question(query) for signal, query in queries(scope).items()}


def _given(entries: Iterable[SignalQuery], service: str, scopes: dict[Role | None, Scope]) -> dict[Key, Question]:
    """Queries of the user, about those of their scopes in which pods serve."""
    asked = {}
    for entry in entries:
        scope = scopes.get(entry.scope.role)
        if scope is not None:
            asked[SIGNALS[entry.signal], entry.scope.role] = _question(entry.query, service, scope)
    return asked


def _question(query: str, service: str, scope: Scope) -> Question:
    try:
        return Question(pinned(query, service, scope), given=True)
    except QueryError as problem:
        return Question(query, given=True, problem=str(problem))
