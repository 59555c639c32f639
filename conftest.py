# SPDX-License-Identifier: Apache-2.0
"""What more than one folder of tests uses: here, since pytest takes plugins from the topmost conftest only."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["gscluster.fixtures"]

# The gate tries the same examples on every run and judges no example by its time, because machines are busy.
# `HYPOTHESIS_PROFILE=explore` looks for new ones.
_TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", _TIMELESS, derandomize=True, database=None)
settings.register_profile("explore", _TIMELESS, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

LANES = {"e2e/test_service_": "services", "e2e/": "cluster", "tests/": "parts"}
"""Tests that may run beside those of the other lanes (`pytest -n 3 --dist loadgroup`): each lane has its own cluster.

Most of them wait, for Kubernetes or for a promise about minutes, so that three lanes fit on two cores.
"""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each test into its lane."""
    for item in items:
        path = item.path.relative_to(Path(__file__).parent).as_posix()
        lane = next(lane for start, lane in LANES.items() if path.startswith(start))
        item.add_marker(pytest.mark.xdist_group(lane))
