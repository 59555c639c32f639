# SPDX-License-Identifier: Apache-2.0
"""The content-addressed store: a result exists under a name that holds the hash of its inputs, or it does not exist.

Nothing records success apart from the result itself. It is built under a temporary name and renamed, so an interrupted
build leaves no half result; a lock file for each kind keeps two builds of the same kind from doing the work twice.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.setup.paths import cache
from tools.setup.process import say

KEY_LENGTH: Final = 12


@dataclass(frozen=True)
class Result:
    """What a step makes.

    `folder` and `name` give the place below the cache: `<folder>/<name>-<key><suffix>`, with the link
    `<folder>/<name><suffix>` to the newest. `build` writes a file or a folder at the path it is given. `about` says in
    one line what is installed and how long it takes. Of older results `keep` stay, for checkouts that still use them.
    """

    folder: str
    name: str
    key: str
    about: str
    build: Callable[[Path], None]
    suffix: str = ""
    keep: int = 3

    @property
    def path(self) -> Path:
        """Where the result lies once it is complete."""
        return cache() / self.folder / f"{self.name}-{self.key}{self.suffix}"

    @property
    def link(self) -> Path:
        """The stable name that points to the result made or used last."""
        return cache() / self.folder / f"{self.name}{self.suffix}"


def key_of(*parts: str | bytes | Path) -> str:
    """A hash of texts and of the contents of files; a folder counts with the names and contents of all its files."""
    digest = hashlib.sha256()
    for part in parts:
        for item in _items(part):
            digest.update(len(item).to_bytes(8, "big"))
            digest.update(item)
    return digest.hexdigest()[:KEY_LENGTH]


def ensure(result: Result) -> Path:
    """Returns the path of the result, building it first if it is absent."""
    path = result.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(f"{result.folder}-{result.name}"):
        if not path.exists():
            _build(result)
        os.utime(path)
        point(result.link, path.name)
        _prune(result)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds the lock of a kind of result; says so when it has to wait for another process.

    Commands started meanwhile inherit the lock: when this process is killed, what it started still holds off others.
    """
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"  {name}: another set-up is at it; waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        os.set_inheritable(handle.fileno(), True)  # noqa: FBT003 - it takes no keyword
        yield


def point(link: Path, name: str) -> None:
    """Makes `link` a symbolic link to `name` beside it, in one step if it pointed elsewhere."""
    if link.is_symlink() and str(link.readlink()) == name:
        return
    aside = link.with_name(f".{link.name}.link")
    remove(aside)
    aside.symlink_to(name)
    aside.replace(link)


def remove(path: Path) -> None:
    """Removes a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _build(result: Result) -> None:
    say(f"==> {result.name}: {result.about}")
    started = time.monotonic()
    aside = result.path.with_name(f".{result.path.name}.partial")
    remove(aside)
    try:
        result.build(aside)
        aside.rename(result.path)
    finally:
        remove(aside)
    say(f"    {result.name}: done in {time.monotonic() - started:.0f} s")


def _prune(result: Result) -> None:
    pattern = f"{result.name}-{'[0-9a-f]' * KEY_LENGTH}{result.suffix}"
    newest_first = sorted(result.path.parent.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first[result.keep :]:
        remove(path)


def _items(part: str | bytes | Path) -> Iterable[bytes]:
    if isinstance(part, bytes):
        yield part
    elif isinstance(part, str):
        yield part.encode()
    elif part.is_dir():
        for path in sorted(p for p in part.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            yield path.relative_to(part).as_posix().encode()
            yield path.read_bytes()
    else:
        yield part.read_bytes()
