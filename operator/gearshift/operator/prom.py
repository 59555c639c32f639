# SPDX-License-Identifier: Apache-2.0
"""Reads signals from Prometheus. What can't be known is a reading without value that says why; never a zero."""

import asyncio
from collections.abc import Iterable

from gearshift.api.vocabulary import Role
from gearshift.operator.http import Http, HttpError
from gearshift.policy.queries import Scope, queries
from gearshift.policy.readings import reading
from gearshift.policy.snapshot import PodView, Reading, Signal

Readings = dict[tuple[Signal, Role | None], Reading]
_FRESH_SECONDS = 5.0  # readings are means over a window: asking more often tells nothing new


class Prometheus:
    """Client of one Prometheus server; without an address every reading is unknown."""

    def __init__(self, http: Http, url: str | None, scrape_seconds: float) -> None:
        self._http = http
        self._url = None if url is None else url.rstrip("/")
        self.scrape_seconds = scrape_seconds

    async def read(self, signal: Signal, query: str, at: float, max_age_seconds: float) -> Reading:
        """Value of a query that yields one number.

        ``at`` is the evaluation time in seconds since the epoch; a sample older than ``max_age_seconds`` is unknown.
        """
        if self._url is None:
            return Reading(None, query=query, why="the operator runs without --prometheus-url")
        form = {"query": query, "time": f"{at:.3f}", "timeout": "5s"}
        try:
            answer = await self._http.call("POST", f"{self._url}/api/v1/query", form=form, timeout_seconds=6.0)
        except HttpError as problem:
            return Reading(None, query=query, why=str(problem))
        return reading(signal, answer.body, query, at, max_age_seconds)


class Signals:
    """All signals of one service, asked anew when they have aged or when pods changed roles."""

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus
        self._scopes: dict[Role | None, Scope] = {}
        self._readings: Readings = {}
        self._read_at = 0.0

    async def read(self, namespace: str, pods: Iterable[PodView], window_seconds: float, at: float) -> Readings:
        """Readings by signal and role; none for a role without serving pods."""
        scopes = self._scoped(namespace, [pod for pod in pods if pod.serving], window_seconds)
        if scopes == self._scopes and at - self._read_at < _FRESH_SECONDS:
            return self._readings
        wanted = {(signal, role): query for role, scope in scopes.items() for signal, query in queries(scope).items()}
        age = max(window_seconds, 4 * self._prometheus.scrape_seconds)
        answers = await asyncio.gather(
            *(self._prometheus.read(signal, query, at, age) for (signal, _), query in wanted.items())
        )
        self._readings = dict(zip(wanted, answers, strict=True))
        self._scopes, self._read_at = scopes, at
        return self._readings

    def _scoped(self, namespace: str, pods: list[PodView], window_seconds: float) -> dict[Role | None, Scope]:
        groups: dict[Role | None, list[str]] = {}
        for pod in sorted(pods, key=lambda pod: pod.name):
            groups.setdefault(None, []).append(pod.name)
            groups.setdefault(pod.role, []).append(pod.name)
        scrape = self._prometheus.scrape_seconds
        return {role: Scope(namespace, tuple(names), window_seconds, scrape) for role, names in groups.items()}
