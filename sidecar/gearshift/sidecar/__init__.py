# SPDX-License-Identifier: Apache-2.0
"""The agent beside an engine: which engine processes run, whether they are ready, and how they change."""
