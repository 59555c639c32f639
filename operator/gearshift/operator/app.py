# SPDX-License-Identifier: Apache-2.0
"""Puts the operator together and runs it until it is told to stop or loses its lease.

Every process watches, so that a new leader knows the cluster already; only the leader has reconcilers.
"""

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
import time
import uuid
from pathlib import Path
from typing import Any

import kopf

from gearshift.operator.budgets import Budgets
from gearshift.operator.errors import KubeError
from gearshift.operator.events import Events
from gearshift.operator.fleet import Fleet
from gearshift.operator.gather import Gatherer
from gearshift.operator.http import Http
from gearshift.operator.index import Index
from gearshift.operator.kube import Kube, connection, load_configuration
from gearshift.operator.lease import Lease, LeaseLost
from gearshift.operator.manifests.meta import Installation
from gearshift.operator.metrics import Metrics, serve
from gearshift.operator.orders import Orders
from gearshift.operator.pods import Pods
from gearshift.operator.prom import Prometheus
from gearshift.operator.reconciler import Reconciler, Tools
from gearshift.operator.reporter import Reporter
from gearshift.operator.resync import resync
from gearshift.operator.settings import Settings
from gearshift.operator.sidecars import Sidecars
from gearshift.operator.watching import Backoffs, first_end, registry, watch_settings

_log = logging.getLogger(__name__)
_STALE_LOOP_SECONDS = 30.0


class App:
    """One operator process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self.identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self.metrics = Metrics()
        self.lease = Lease(settings.own_namespace, settings.lease_name, self.identity)
        self.metrics.leader.set_function(lambda: float(self.lease.leading))
        self._relisted = asyncio.Event()
        self._beat_at = time.monotonic()

    def stop(self) -> None:
        """Ask the process to end."""
        self._stopping.set()

    async def run(self) -> int:
        """Run; the exit code: 0 when told to stop, 3 when another process took the lease, 1 when a part failed."""
        settings = self._settings
        self._take_signals()
        configuration = await load_configuration(settings.kubeconfig)
        async with (
            serve(self.metrics, settings.metrics_host, settings.metrics_port, self._alive) as port,
            Kube.connect(configuration, self.lease.check) as kube,
            Http.connect() as http,
        ):
            _warn_without(Path(settings.token_file))
            _log.info("metrics on port %d, identity %s", port, self.identity)
            return await self._run(kube, http)

    def _alive(self) -> bool:
        return time.monotonic() - self._beat_at < _STALE_LOOP_SECONDS

    async def _run(self, kube: Kube, http: Http) -> int:
        fleet = Fleet()
        index = Index(fleet.wake)
        stop_kopf = asyncio.Event()
        parts = {
            asyncio.create_task(self._stopping.wait(), name="stop"),
            asyncio.create_task(self._beat(), name="beat"),
            asyncio.create_task(self.lease.run(kube), name="lease"),
            asyncio.create_task(self._watch(index, stop_kopf), name="watch"),
        }
        lead = asyncio.create_task(self._lead(kube, http, index, fleet), name="lead")
        try:
            done, _ = await asyncio.wait({*parts, lead}, return_when=asyncio.FIRST_COMPLETED)
            if lead in done and lead.exception() is None:
                resyncing = asyncio.create_task(self._resync_for_ever(kube, index), name="resync")
                done, _ = await asyncio.wait({*parts, resyncing}, return_when=asyncio.FIRST_COMPLETED)
                parts.add(resyncing)
            return _exit_code(done)
        finally:
            await fleet.stop()
            await self._release(kube)
            stop_kopf.set()
            for task in {*parts, lead}:
                task.cancel()
            await asyncio.wait({*parts, lead}, timeout=2.0)

    async def _lead(self, kube: Kube, http: Http, index: Index, fleet: Fleet) -> None:
        """Wait for the lease, list everything, and start the reconcilers."""
        await self.lease.acquired.wait()
        account = await self._retried("who this process is", kube.whoami) if self._settings.account is None else None
        await self._retried("full listing", lambda: resync(kube, index, self._settings.namespaces))
        tools = self._tools(kube, http, index, account or str(self._settings.account))
        fleet.start(index, lambda uid: self._reconciler(uid, tools, http))

    def _tools(self, kube: Kube, http: Http, index: Index, account: str) -> Tools:
        settings = self._settings
        events = Events(kube, self.identity)
        return Tools(
            kube=kube,
            index=index,
            lease=self.lease,
            orders=Orders(Sidecars(http, settings.token_file), self.lease),
            events=events,
            reporter=Reporter(kube, index, events, self.metrics),
            metrics=self.metrics,
            budgets=Budgets(index, settings.namespace_accelerators),
            installation=Installation(
                image=settings.image,
                engine_image_cuda=settings.engine_image_cuda,
                engine_image_cpu=settings.engine_image_cpu,
                image_pull_policy=settings.image_pull_policy,
                operator_namespace=settings.own_namespace,
                operator_account=account,
                router_replicas=settings.router_replicas,
                monitoring_namespace=settings.monitoring_namespace,
                router_limits=settings.router_limits,
            ),
            tick_seconds=settings.tick_seconds,
        )

    def _reconciler(self, uid: str, tools: Tools, http: Http) -> Reconciler:
        settings = self._settings
        prometheus = Prometheus(http, settings.prometheus_url, settings.scrape_seconds)
        gatherer = Gatherer(
            tools.index,
            Sidecars(http, settings.token_file),
            prometheus,
            tools.budgets,
            node_lost_seconds=settings.node_lost_seconds,
            transition_grace_seconds=settings.transition_grace_seconds,
        )
        return Reconciler(uid, tools, gatherer, Pods(tools.kube, tools.index, tools.installation))

    async def _watch(self, index: Index, stop: asyncio.Event) -> None:
        """Watch until ``stop`` is set. What kopf gives up, as it does after an error within a stream, begins anew."""
        settings = self._settings

        async def login() -> dict[str, Any]:
            return await connection(await load_configuration(settings.kubeconfig))

        handlers = registry(index, login, self._relisted.set)
        for pause in Backoffs():
            tasks = await kopf.spawn_tasks(
                registry=handlers,
                settings=watch_settings(),
                standalone=True,
                clusterwide=not settings.namespaces,
                namespaces=settings.namespaces,
                stop_flag=stop,
            )
            self._take_signals()
            problem = await first_end(tasks)
            if stop.is_set():
                return
            _log.warning("watches ended: %r; they begin anew in %.1f s", problem, pause)
            await asyncio.sleep(pause)

    def _take_signals(self) -> None:
        """Signals end this process in its own order; kopf would take them for itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    async def _resync_for_ever(self, kube: Kube, index: Index) -> None:
        """List everything now and then, and soon after watches have begun anew."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.resync_seconds * random.uniform(0.9, 1.1)):  # noqa: S311
                    await self._relisted.wait()
            await asyncio.sleep(random.uniform(0.5, 1.0))  # noqa: S311 - the other watches may follow
            self._relisted.clear()
            await self._retried("full listing", lambda: resync(kube, index, self._settings.namespaces))

    async def _retried(self, what: str, call: Any) -> Any:
        pause = 0.5
        while True:
            try:
                return await call()
            except KubeError as problem:
                _log.warning("%s: %s; next try in %.1f s", what, problem, pause)
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))  # noqa: S311 - jitter
                pause = min(pause * 2, 10.0)

    async def _beat(self) -> None:
        while True:
            self._beat_at = time.monotonic()
            await asyncio.sleep(1.0)

    async def _release(self, kube: Kube) -> None:
        try:
            async with asyncio.timeout(2.0):
                await self.lease.release(kube)
        except (KubeError, TimeoutError) as problem:
            _log.warning("the lease could not be given back: %r", problem)


def _warn_without(token: Path) -> None:
    if not token.is_file():
        _log.warning("--token-file %s is not there: no sidecar will answer", token)


def _exit_code(done: set[asyncio.Task[Any]]) -> int:
    for task in done:
        if task.get_name() == "stop":
            return 0
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, LeaseLost):
            _log.error("%s", problem)
            return 3
        _log.error("%s ended: %r", task.get_name(), problem, exc_info=problem)
    return 1
