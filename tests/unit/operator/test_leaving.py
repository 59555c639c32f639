# SPDX-License-Identifier: Apache-2.0
"""The process ends when its work has ended, and its exit code says how."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, contextlib, uvloop
from gearshift.operator.leaving import leave_after

async def never_ends():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)

async def work():
    clinging = asyncio.create_task(never_ends())
    await asyncio.sleep(0)
    {ending}

uvloop.run(leave_after(work()))
"""


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("return 0", 0, ""),
        ("return 3", 3, ""),
        ("raise ValueError('a defect')", 1, "ValueError: a defect"),
    ],
)
def test_a_task_that_does_not_end_keeps_no_process(ending: str, code: int, said: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(ending=ending)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, said in ended.stderr) == (code, True)
