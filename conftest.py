# SPDX-License-Identifier: Apache-2.0
"""What more than one folder of tests uses: here, since pytest takes plugins from the topmost conftest only."""

import os

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["gscluster.fixtures"]

# The gate tries the same examples on every run and judges no example by its time, because machines are busy.
# `HYPOTHESIS_PROFILE=explore` looks for new ones.
_TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", _TIMELESS, derandomize=True, database=None)
settings.register_profile("explore", _TIMELESS, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

LANES = {"e2e/test_outage_": "outages", "e2e/": "clusters", "tests/": "parts"}
"""Tests that may run beside those of the other lanes (`pytest -n 3`): each lane has its own cluster.

Most of them wait, for Kubernetes or for a promise about minutes, so that three lanes fit on two cores. Real engines
don't wait: those of `e2e/` have ended when those of `tests/`, the last ones there, start.
"""
REAL_ENGINES = ("e2e/test_service_vllm.py", "e2e/test_service_shift.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put real engines in clusters before all other services."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    path = item.nodeid.partition("::")[0]
    if path in REAL_ENGINES:
        return 1
    return 2 if path.startswith("e2e/test_service_") else 0


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives each lane to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return next(lane for start, lane in LANES.items() if nodeid.startswith(start))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    """Hook of pytest-xdist."""
    return Lanes(config, log)
