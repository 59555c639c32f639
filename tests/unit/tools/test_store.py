# SPDX-License-Identifier: Apache-2.0
"""A result exists completely or not at all, is made once, and old ones go."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup.paths import ROOT
from tools.setup.store import Result, ensure, key_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEARSHIFT_CACHE", str(tmp_path))
    return tmp_path


def result(key: str, build: Callable[[Path], None], *, keep: int = 3) -> Result:
    return Result(folder="things", name="thing", key=key, about="a thing", build=build, suffix=".txt", keep=keep)


def writes(text: str) -> Callable[[Path], None]:
    def build(aside: Path) -> None:
        aside.write_text(text)

    return build


def refuses(_aside: Path) -> None:
    raise AssertionError("built again")


def test_a_result_is_built_once_and_linked(cache: Path) -> None:
    path = ensure(result("a" * 12, writes("one")))
    assert path == cache / "things" / f"thing-{'a' * 12}.txt"
    assert (cache / "things" / "thing.txt").read_text() == "one"
    assert ensure(result("a" * 12, refuses)) == path


def test_a_failed_build_leaves_nothing_and_is_tried_again(cache: Path) -> None:
    def fails(aside: Path) -> None:
        aside.mkdir()
        (aside / "half").write_text("half")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        ensure(result("b" * 12, fails))
    assert list((cache / "things").iterdir()) == []
    assert ensure(result("b" * 12, writes("whole"))).read_text() == "whole"


def test_what_a_killed_build_left_is_not_taken_for_a_result(cache: Path) -> None:
    left = cache / "things" / f".thing-{'c' * 12}.txt.partial"
    left.mkdir(parents=True)
    (left / "half").write_text("half")
    assert ensure(result("c" * 12, writes("whole"))).read_text() == "whole"
    assert not left.exists()


def test_the_link_follows_the_result_used_last(cache: Path) -> None:
    ensure(result("a" * 12, writes("old")))
    ensure(result("b" * 12, writes("new")))
    ensure(result("a" * 12, refuses))
    assert (cache / "things" / "thing.txt").read_text() == "old"


def test_only_the_newest_are_kept(cache: Path) -> None:
    for age, key in enumerate(("a" * 12, "b" * 12)):
        os.utime(ensure(result(key, writes(key), keep=2)), (age, age))
    ensure(result("c" * 12, writes("c"), keep=2))
    assert sorted(path.name for path in (cache / "things").glob("thing-*")) == [
        f"thing-{'b' * 12}.txt",
        f"thing-{'c' * 12}.txt",
    ]


def test_two_at_once_build_once() -> None:
    built = []
    entered = threading.Event()
    release = threading.Event()

    def slow(aside: Path) -> None:
        built.append(threading.get_ident())
        entered.set()
        assert release.wait(timeout=10)
        aside.write_text("x")

    threads = [threading.Thread(target=ensure, args=(result("d" * 12, slow),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert entered.wait(timeout=10)
    release.set()
    for thread in threads:
        thread.join(timeout=10)
    assert len(built) == 1


def test_a_command_that_outlives_a_killed_set_up_keeps_the_lock(cache: Path) -> None:
    code = """
from tools.setup.process import run
from tools.setup.paths import ROOT
from tools.setup.store import locked
with locked("x"):
    run("x", ["sh", "-c", "echo $$ > child; read line < gate"])
"""
    os.mkfifo(cache / "gate")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=cache, env=environment)
    with (cache / "gate").open("w") as gate:  # opens once the command reads from it
        parent.kill()
        parent.wait()
        with (cache / "locks" / "x.lock").open("w") as handle:
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            gate.write("go\n")
            gate.close()
            fcntl.flock(handle, fcntl.LOCK_EX)


def test_a_key_depends_on_names_and_contents_and_not_on_time(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "a").write_text("1")
    before = key_of("recipe", folder)
    os.utime(folder / "a", (1, 1))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_text("bytecode")
    assert key_of("recipe", folder) == before
    (folder / "a").rename(folder / "b")
    assert key_of("recipe", folder) != before


def test_parts_of_a_key_do_not_run_together() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
