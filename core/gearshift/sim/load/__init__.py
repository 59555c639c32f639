# SPDX-License-Identifier: Apache-2.0
"""Open-loop load on an OpenAI server: arrivals from phases or traces, and what the clients saw."""

from gearshift.sim.load.arrivals import Arrival, LoadSpecError, Phase, draw_arrivals, parse_phases
from gearshift.sim.load.client import Outcome, Target, run_load
from gearshift.sim.load.summary import summarize
from gearshift.sim.load.traces import TraceError, read_trace

__all__ = [
    "Arrival",
    "LoadSpecError",
    "Outcome",
    "Phase",
    "Target",
    "TraceError",
    "draw_arrivals",
    "parse_phases",
    "read_trace",
    "run_load",
    "summarize",
]
