# SPDX-License-Identifier: Apache-2.0
"""The series of the shift engine as Prometheus reads them."""

from prometheus_client import CollectorRegistry, generate_latest

from gearshift.engine.compat.v0_32 import Compat032
from gearshift.engine.core import CoreUtilities
from gearshift.engine.shiftmetrics import ShiftCollector
from tests.unit.engine.fake_core import FakeCore


def page(view: dict[str, object] | None) -> list[str]:
    registry = CollectorRegistry()
    registry.register(ShiftCollector(lambda: view))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_every_number_of_the_ranks_has_its_series() -> None:
    view = CoreUtilities(Compat032()).state(FakeCore(ranks=2).shift(96), fresh=True)["shift"]
    assert page(view) == [
        'gearshift_shift_steps_total{layout="TP"} 5.0',
        'gearshift_shift_steps_total{layout="SP"} 2.0',
        'gearshift_shift_tokens_total{layout="TP"} 50.0',
        'gearshift_shift_tokens_total{layout="SP"} 700.0',
        'gearshift_shift_step_seconds_count{layout="TP"} 5.0',
        'gearshift_shift_step_seconds_sum{layout="TP"} 0.5',
        'gearshift_shift_step_seconds_count{layout="SP"} 2.0',
        'gearshift_shift_step_seconds_sum{layout="SP"} 0.25',
        "gearshift_shift_threshold_tokens 96.0",
        "gearshift_shift_all_to_all_bytes_total 2000.0",
        'gearshift_shift_start_seconds{phase="load"} 1.5',
        'gearshift_shift_weights_bytes{layout="TP"} 10.0',
        'gearshift_shift_weights_bytes{layout="SP"} 20.0',
    ]


def test_before_the_first_answer_there_is_nothing() -> None:
    assert page(None) == []
