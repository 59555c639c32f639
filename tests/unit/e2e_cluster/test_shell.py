# SPDX-License-Identifier: Apache-2.0
"""A command that fails says which one it was and what it said."""

import pytest

from gscluster.errors import ClusterError
from gscluster.shell import run, succeeds
from gscluster.waiting import wait_for


def test_output_and_input_pass_through() -> None:
    assert run(["cat"], stdin="text") == "text"


def test_a_failure_carries_status_command_and_error_output() -> None:
    with pytest.raises(ClusterError, match=r"exit status 3: sh -c 'echo why >&2; exit 3'\nwhy"):
        run(["sh", "-c", "echo why >&2; exit 3"])


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ClusterError, match="program 'no-such-program' is not installed"):
        run(["no-such-program"])


def test_a_command_that_hangs_is_ended() -> None:
    with pytest.raises(ClusterError, match=r"no end after 0.05 s: sleep 60"):
        run(["sleep", "60"], timeout_seconds=0.05)


def test_success_is_a_question_too() -> None:
    assert succeeds(["true"])
    assert not succeeds(["false"])


def test_waiting_in_vain_names_what_was_waited_for() -> None:
    with pytest.raises(ClusterError, match=r"waited 0.02 s in vain for the moon"):
        wait_for(lambda: False, "the moon", timeout_seconds=0.02, interval_seconds=0.01)
