# SPDX-License-Identifier: Apache-2.0
"""Engine environment, tiny model, and servers that live as long as a module: each takes a minute to start."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gearshift.engine.host.leftovers import remove_leftovers
from tests.vllm.engines import NIXL_ARGS, POD_USER, Engine, Environment, engine_python, start
from tools.setup.code import stage_code
from tools.setup.paths import ROOT
from tools.tinymodel.make import make
from tools.tinymodel.shape import Shape

DEEP = 32
"""Layers of the model: an engine that makes tokens faster than its API server tells them hides what it does now."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder carry the mark."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.vllm)


@pytest.fixture(scope="session")
def environment() -> Iterator[Environment]:
    """Interpreter, code with its entry points, model. What the servers leave in shared memory goes at the end."""
    python = engine_python()
    if not python.exists():
        pytest.fail(f"{python} is missing: run `python3 tools/setup engine-env`")
    since = time.time()
    with tempfile.TemporaryDirectory(prefix="gearshift-vllm-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        scratch.chmod(0o755)  # the servers run as another user, who can't enter pytest's own folders
        code, model = scratch / "code", scratch / "tiny"
        code.mkdir()
        stage_code(code, ROOT)
        make(model, Shape(layers=DEEP), seed=1)
        yield Environment(python, code, model, scratch)
    _clean_shared_memory(since)


def _clean_shared_memory(since: float) -> None:
    """The servers that no engine host ran belong to another user when this is root."""
    for user in {os.geteuid(), POD_USER}:
        remove_leftovers(since, user=user)


@pytest.fixture(scope="module")
def pair(environment: Environment) -> Iterator[tuple[Engine, Engine]]:
    """Two servers that can pass KV to each other. They end with the module: NIXL takes a core from an idle engine."""
    shallow = replace(environment, model=environment.scratch / "shallow")  # each layer is a transfer of its own
    make(shallow.model, Shape(), seed=1)
    with _running([start(shallow, name, cores, *NIXL_ARGS) for name, cores in (("a", "0"), ("b", "1"))]) as engines:
        yield engines[0], engines[1]


@pytest.fixture(scope="module")
def alone(environment: Environment) -> Iterator[Engine]:
    """One server."""
    with _running([start(environment, "single", "0")]) as (engine,):
        yield engine


@contextmanager
def _running(engines: list[Engine]) -> Iterator[list[Engine]]:
    try:
        for engine in engines:
            engine.client.wait_ready(engine.process, engine.log)
        yield engines
    finally:
        for engine in engines:
            engine.stop()


@pytest.fixture
def engine(alone: Engine) -> Iterator[Engine]:
    """One server; as it was at the start, also afterwards."""
    yield alone
    alone.client.order("POST", "resume")
    alone.client.order("POST", "role", {"role": "Unified", "epoch": 0})
