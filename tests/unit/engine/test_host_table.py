# SPDX-License-Identifier: Apache-2.0
"""The process table of the engine host."""

import pytest

from gearshift.api.host import ProcessSpec
from gearshift.engine.host.table import RefusedError, Table

SPEC = ProcessSpec(argv=["python", "-c", "1"])
OTHER = ProcessSpec(argv=["python", "-c", "2"])


def test_a_new_name_is_admitted() -> None:
    assert Table().admit("tp", SPEC) is None


def test_the_same_spec_again_is_the_same_process() -> None:
    table = Table()
    entry = table.started("tp", SPEC, 7, 1.0)
    assert table.admit("tp", SPEC.model_copy(deep=True)) is entry


def test_another_spec_under_a_living_name_is_refused() -> None:
    table = Table()
    table.started("tp", SPEC, 7, 1.0)
    with pytest.raises(RefusedError, match=r"'tp' runs \(pid 7\) with another spec") as error:
        table.admit("tp", OTHER)
    assert error.value.reason == "SpecDiffers"


@pytest.mark.parametrize("spec", [SPEC, OTHER])
def test_a_dead_name_can_be_used_again(spec: ProcessSpec) -> None:
    table = Table()
    table.started("tp", SPEC, 7, 1.0)
    table.exited(7, -9)
    assert table.admit("tp", spec) is None
    table.started("tp", spec, 8, 2.0)
    assert [(entry.pid, entry.running) for entry in table] == [(8, True)]


def test_nothing_starts_while_terminating_but_what_runs_is_still_known() -> None:
    table = Table()
    entry = table.started("tp", SPEC, 7, 1.0)
    table.terminating = True
    assert table.admit("tp", SPEC) is entry
    with pytest.raises(RefusedError, match="terminating"):
        table.admit("dp", SPEC)


def test_an_exit_is_recorded_once_and_only_for_the_living() -> None:
    table = Table()
    table.started("tp", SPEC, 7, 1.0)
    assert table.exited(8, 0) is None
    entry = table.exited(7, -15)
    assert entry is not None
    assert table.exited(7, 0) is None
    assert entry.status().exit_code == -15
    assert entry.status().state == "Exited"
    assert table.running() == []


def test_the_status_carries_the_last_fifty_lines() -> None:
    entry = Table().started("tp", SPEC, 7, 1.0)
    entry.log_tail.extend(str(number) for number in range(70))
    assert entry.status().log_tail == [str(number) for number in range(20, 70)]
