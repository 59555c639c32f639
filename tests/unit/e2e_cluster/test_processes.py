# SPDX-License-Identifier: Apache-2.0
"""Processes are started once, found again, and ended only when they are the ones that were started."""

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gscluster.errors import ClusterError
from gscluster.processes import ProcessTable, Record, boot_id, started_ticks
from gscluster.waiting import wait_for

SLEEP = ["sleep", "60"]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    table = ProcessTable(tmp_path, None)
    yield table
    for name in table.names():
        table.kill(name)


def test_a_started_process_is_found_by_another_table(table: ProcessTable, tmp_path: Path) -> None:
    table.start("one", SLEEP)
    other = ProcessTable(tmp_path, None)
    assert other.names() == ["one"]
    assert other.is_running("one")
    assert other.process_id("one") == table.process_id("one")


def test_a_second_start_of_a_running_process_is_refused(table: ProcessTable) -> None:
    table.start("one", SLEEP)
    with pytest.raises(ClusterError, match="one runs already"):
        table.start("one", SLEEP)


def test_stop_ends_the_process_and_is_repeatable(table: ProcessTable) -> None:
    table.start("one", SLEEP)
    process_id = table.process_id("one")
    table.stop("one")
    table.stop("one")
    assert started_ticks(process_id) is None
    assert table.stopped() == ["one"]


def test_stop_ends_a_process_that_ignores_the_first_signal(table: ProcessTable) -> None:
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)"
    table.start("deaf", [sys.executable, "-S", "-c", f"{program}; time.sleep(60)"])
    wait_for(
        lambda: "deaf\n" in table.log("deaf").read_text(), "the process", timeout_seconds=10, interval_seconds=0.01
    )
    table.stop("deaf", grace_seconds=0.05)
    assert not table.is_running("deaf")


def test_a_paused_process_runs_and_can_be_killed(table: ProcessTable) -> None:
    table.start("one", SLEEP)
    table.send("one", signal.SIGSTOP)
    assert table.is_running("one")
    table.kill("one")
    assert not table.is_running("one")


def test_restart_uses_the_same_arguments(table: ProcessTable) -> None:
    table.start("one", SLEEP)
    first = table.process_id("one")
    table.kill("one")
    table.restart("one")
    assert table.process_id("one") != first
    command_line = Path(f"/proc/{table.process_id('one')}/cmdline")  # that of the shell until it has become the program
    wait_for(lambda: command_line.read_bytes() == b"sleep\x0060\x00", "the same arguments", timeout_seconds=10)


def test_a_process_that_has_ended_is_not_running_and_its_log_is_kept(table: ProcessTable) -> None:
    table.start("brief", ["sh", "-c", "echo out; echo err >&2"])
    wait_for(lambda: not table.is_running("brief"), "the end", timeout_seconds=10, interval_seconds=0.01)
    with pytest.raises(ClusterError, match=r"brief does not run \(its log: .*brief.log\)"):
        table.process_id("brief")
    assert table.log_tail("brief") == "--- last lines of brief:\nout\nerr"
    assert table.log_tail("brief", lines=1) == "--- last lines of brief:\nerr"


@pytest.mark.parametrize(("late_ticks", "boot"), [(1, boot_id()), (0, "another")])
def test_a_reused_process_id_is_not_ours(table: ProcessTable, tmp_path: Path, late_ticks: int, boot: str) -> None:
    own_ticks = started_ticks(os.getpid())
    assert own_ticks is not None
    record = Record(os.getpid(), own_ticks - late_ticks, boot, SLEEP)
    (tmp_path / "processes").mkdir()
    (tmp_path / "processes/one.json").write_text(json.dumps(dataclasses.asdict(record)))
    assert not table.is_running("one")
    table.kill("one")  # this test would not end well if it did anything


def test_an_unknown_name_is_an_error_that_lists_the_known(table: ProcessTable) -> None:
    table.start("one", SLEEP)
    with pytest.raises(ClusterError, match="no component 'two'; there are: one"):
        table.process_id("two")
