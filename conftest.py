# SPDX-License-Identifier: Apache-2.0
"""What more than one folder of tests uses: here, since pytest takes plugins from the topmost conftest only."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["gscluster.fixtures"]

# The gate tries the same examples on every run and judges no example by its time, because machines are busy.
# `HYPOTHESIS_PROFILE=explore` looks for new ones.
_TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", _TIMELESS, derandomize=True, database=None)
settings.register_profile("explore", _TIMELESS, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))
