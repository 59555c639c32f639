# SPDX-License-Identifier: Apache-2.0
"""Fixtures that more than one folder of tests uses: here, since pytest takes plugins from the topmost conftest only."""

pytest_plugins = ["gscluster.fixtures"]
