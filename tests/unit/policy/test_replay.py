# SPDX-License-Identifier: Apache-2.0
"""Recorded days against their golden logs: a change of the policy's behaviour is a diff that someone reads.

After a wanted change: ``tools/run python -m tools.replay log``.
"""

import gzip
from itertools import islice

import pytest

from gearshift.sim.replay.record import RecordError, dump, load
from tools.replay.__main__ import golden, log, recording
from tools.replay.days import SPECS


@pytest.mark.parametrize("name", SPECS)
def test_a_day_is_decided_as_it_was(name: str) -> None:
    assert log(name).splitlines() == golden(name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", SPECS)
def test_a_recording_is_read_as_it_was_written(name: str) -> None:
    with gzip.open(recording(name), "rt", encoding="utf-8") as lines:
        recorded = list(load(islice(lines, 50)))
    assert list(load(dump(recorded))) == recorded


@pytest.mark.parametrize(
    ("line", "problem"), [("{", "JSONDecodeError"), ("{}", "KeyError"), ('{"at": 1, "pods": [[1]]}', "")]
)
def test_a_line_that_is_no_record_is_named(line: str, problem: str) -> None:
    with gzip.open(recording("scaling"), "rt", encoding="utf-8") as lines:
        header = lines.readline()
    with pytest.raises(RecordError, match=f"line 2: {problem}"):
        list(load([header, line]))


def test_the_days_show_every_kind_of_action() -> None:
    text = "".join(golden(name).read_text(encoding="utf-8") for name in SPECS)
    for words in ("Create pod", "Delete sim-", "Role of", "Layout of"):
        assert words in text
