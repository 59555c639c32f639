# SPDX-License-Identifier: Apache-2.0
"""Which specs can be started, and what stays behind."""

import mmap
import os
import sys
from pathlib import Path

import pytest

from gearshift.api.host import ProcessSpec
from gearshift.engine.host.children import BadSpecError, resolve, spawn
from gearshift.engine.host.leftovers import remove_leftovers


@pytest.mark.parametrize("command", ["python", "python3"])
def test_a_bare_python_is_the_interpreter_of_the_host(command: str) -> None:
    assert resolve(command, {"PATH": "/nowhere"}) == sys.executable


def test_other_commands_are_found_on_the_path_of_the_spec(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert resolve("tool", {"PATH": str(tmp_path)}) == str(tool)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (ProcessSpec(argv=["no-such-program"]), r"argv\[0\]: 'no-such-program' is not an executable file on PATH"),
        (ProcessSpec(argv=["/etc/passwd"]), r"argv\[0\]: '/etc/passwd' is not an executable file"),
        (ProcessSpec(argv=[""]), r"argv\[0\]: '' is empty"),
        (ProcessSpec(argv=["python", "a\0b"]), r"argv\[1\]: .* NUL"),
        (ProcessSpec(argv=["python"], env={"A=B": "1"}), r"env\['A=B'\]"),
        (ProcessSpec(argv=["python"], env={"A": "\0"}), r"env\['A'\]"),
    ],
)
def test_a_bad_spec_names_its_field(spec: ProcessSpec, text: str) -> None:
    with pytest.raises(BadSpecError, match=text):
        spawn(spec, dict(os.environ))


def test_a_file_that_can_not_be_executed_is_a_bad_spec(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(BadSpecError, match=r"argv: .*broken can't be started: Exec format error"):
        spawn(ProcessSpec(argv=[str(broken)]), dict(os.environ))


def test_only_new_unmapped_segments_of_engines_are_removed(tmp_path: Path) -> None:
    for name in ("vllm_dist_a-cpushm", "vllm_dist_old-cpushm", "vllm_dist_mapped-cpushm", "psm_1", "other"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    os.utime(tmp_path / "vllm_dist_old-cpushm", (1.0, 1.0))
    with (tmp_path / "vllm_dist_mapped-cpushm").open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert remove_leftovers(since=2.0, folder=tmp_path) == ["psm_1", "vllm_dist_a-cpushm"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "other",
        "vllm_dist_mapped-cpushm",
        "vllm_dist_old-cpushm",
    ]
