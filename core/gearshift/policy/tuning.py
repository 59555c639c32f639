# SPDX-License-Identifier: Apache-2.0
"""Numbers of the policy that no user sets, each with its reason, in one place."""

from typing import Final

EVIDENCE_WINDOWS: Final = 0.5
"""Share of ``policy.window`` for which a decision must have been wanted; readings are means over a window already."""

QUEUE_HIGH: Final = 4.0
"""Waiting requests per pod that are a queue, not a ripple of arrivals: pressure 1."""

QUEUE_SOME: Final = 1.0
"""Waiting requests per pod that count as a queue once TTFT misses its objective."""

QUEUE_LOW: Final = 0.5
"""Waiting requests per pod below which nothing queues. Far under `QUEUE_HIGH`, so that one load is never both."""

KV_FULL: Final = 0.9
"""Used share of the KV cache from which requests wait for blocks."""

KV_LOW: Final = 0.5
"""Used share of the KV cache below which load may be light."""

RUNNING_LOW: Final = 16.0
"""Running requests per pod below which load may be light: small batches gain nothing from throughput layouts."""

LIGHT_SHARE: Final = 0.6
"""Share of a layout's known capacity below which the service may go back to that layout."""

HOT: Final = 0.9
"""Pressure from which a role asks for another pod (1: objective just missed)."""

BAND: Final = 0.85
"""After a flip the donor's pressure must stay below this share of the receiver's, so that none asks for its reverse."""

DONOR_SHARE: Final = 0.85
"""Share of their known capacity at which the pods left behind by a flip may run."""

PRESSURE_CAP: Final = 10.0
"""Pressures above it are equal: a queue grows without bound, its length says nothing more."""

CAPACITY_WINDOWS: Final = 60.0
"""Windows after which a measured capacity is forgotten: models and request mixes change."""

REPLACE_AFTER_SECONDS: Final = 10.0
"""Least age of a failed pod before it is replaced, so that a pod that fails at once is not remade in a tight loop."""
