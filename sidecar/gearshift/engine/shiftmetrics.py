# SPDX-License-Identifier: Apache-2.0
"""Prometheus series of the shift engine, on the page that vLLM's API server shows anyway.

The numbers are counted by the ranks and reach this process with every state, so a scrape costs the engine nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from gearshift.engine.control import Control, ControlError

REFRESH_SECONDS: Final = 2.0
_LOG: Final = logging.getLogger("vllm.gearshift.shift")
_LAYOUT: Final = ["layout"]


class ShiftCollector(Collector):
    """Shows the last view of the engine; nothing before there is one."""

    def __init__(self, view: Callable[[], dict[str, Any] | None]) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """The series. A scrape calls it."""
        view = self._view()
        if view is None:
            return
        steps = CounterMetricFamily("gearshift_shift_steps", "Engine steps by layout.", labels=_LAYOUT)
        tokens = CounterMetricFamily("gearshift_shift_tokens", "Scheduled tokens by layout.", labels=_LAYOUT)
        times = SummaryMetricFamily("gearshift_shift_step_seconds", "Time of steps on rank 0.", labels=_LAYOUT)
        for layout, count in view["steps"].items():
            steps.add_metric([layout], count)
            tokens.add_metric([layout], view["tokens"][layout])
            times.add_metric([layout], count, view["stepSeconds"].get(layout, 0.0))
        yield from (steps, tokens, times)
        yield GaugeMetricFamily(
            "gearshift_shift_threshold_tokens",
            "Steps with more scheduled tokens run sequence parallel.",
            value=view["thresholdTokens"],
        )
        yield CounterMetricFamily(
            "gearshift_shift_all_to_all_bytes",
            "Bytes that all ranks have sent to others for sequence-parallel steps.",
            value=view["exchangedBytes"],
        )
        yield from _starting(view)


def _starting(view: dict[str, Any]) -> Iterator[Metric]:
    phases = GaugeMetricFamily("gearshift_shift_start_seconds", "Time of the phases of the start.", labels=["phase"])
    for phase, seconds in view["phases"].items():
        phases.add_metric([phase], seconds)
    weights = GaugeMetricFamily("gearshift_shift_weights_bytes", "Weights by tree on rank 0.", labels=_LAYOUT)
    for layout, size in view["weightsBytes"].items():
        weights.add_metric([layout], size)
    yield from (phases, weights)


async def refresh(control: Control) -> None:
    """Keep the view fresh where no sidecar asks for the engine's state. Runs until cancelled."""
    while True:
        try:
            await control.state()
        except ControlError as error:
            _LOG.warning("metrics of the shift engine are not refreshed: %s", error)
        await asyncio.sleep(REFRESH_SECONDS)
