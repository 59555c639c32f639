# SPDX-License-Identifier: Apache-2.0
"""Reading the process tree."""

import os

from gearshift.engine.host.procfs import Process, below, of_session, parse_stat, processes

TREE = [
    Process(pid=1, parent=0, session=1, zombie=False),
    Process(pid=10, parent=1, session=10, zombie=False),
    Process(pid=11, parent=10, session=10, zombie=False),
    Process(pid=12, parent=11, session=12, zombie=False),
    Process(pid=13, parent=11, session=10, zombie=True),
    Process(pid=20, parent=1, session=20, zombie=False),
]


def test_a_command_may_hold_spaces_and_parentheses() -> None:
    assert parse_stat("42 (a) b (c)) S 7 42 40 0 -1 4194560") == Process(pid=42, parent=7, session=40, zombie=False)
    assert parse_stat("42 (x) Z 7 42 40 0 -1").zombie


def test_this_process_is_found_with_its_parent_and_session() -> None:
    assert Process(os.getpid(), os.getppid(), os.getsid(0), zombie=False) in processes()


def test_a_session_is_its_living_members() -> None:
    assert of_session(10, TREE) == [10, 11]


def test_descendants_cross_sessions_and_leave_out_the_root_and_the_dead() -> None:
    assert sorted(below(10, TREE)) == [11, 12]
    assert sorted(below(1, TREE)) == [10, 11, 12, 20]
    assert below(99, TREE) == []
