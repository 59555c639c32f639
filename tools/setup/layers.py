# SPDX-License-Identifier: Apache-2.0
"""Image layers: tar files whose bytes depend on names, modes and contents only, never on time or order of creation."""

import fnmatch
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Tree:
    """A folder on this machine and where it goes.

    `target` is relative to the image's root, empty for the root itself. Paths below `source` that match a pattern of
    `without` are left out. Owners become root unless `keep_owners`.
    """

    source: Path
    target: str = ""
    without: tuple[str, ...] = ()
    keep_owners: bool = False


def write_layer(out: Path, trees: Sequence[Tree]) -> None:
    """Writes the trees as one uncompressed tar, parents before children and names in order.

    Files keep their mode and hard links; times are 0. Devices, sockets and pipes are left out.
    """
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as archive:
        written: set[str] = set()
        for tree in trees:
            for parent in reversed(PurePosixPath(tree.target).parents[:-1] if tree.target else ()):
                _add_folder(archive, written, str(parent))
            if tree.target:
                _add_folder(archive, written, tree.target)
            _add_tree(archive, tree)


def _add_folder(archive: tarfile.TarFile, written: set[str], name: str) -> None:
    if name not in written:
        info = tarfile.TarInfo(name)
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
        written.add(name)


def _add_tree(archive: tarfile.TarFile, tree: Tree) -> None:
    first_names: dict[tuple[int, int], str] = {}
    for path in _walk(tree.source, tree.source, tree.without):
        name = str(PurePosixPath(tree.target, path.relative_to(tree.source).as_posix()))
        info = _member(path, name, first_names, keep_owners=tree.keep_owners)
        if info.isreg():
            with path.open("rb") as content:
                archive.addfile(info, content)
        else:
            archive.addfile(info)


def _member(path: Path, name: str, first_names: dict[tuple[int, int], str], *, keep_owners: bool) -> tarfile.TarInfo:
    found = path.lstat()
    info = tarfile.TarInfo(name)
    info.mode = stat.S_IMODE(found.st_mode)
    if keep_owners:
        info.uid, info.gid = found.st_uid, found.st_gid
    if stat.S_ISLNK(found.st_mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
    elif stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    elif first := first_names.get((found.st_dev, found.st_ino)):
        info.type, info.linkname = tarfile.LNKTYPE, first
    else:
        info.size = found.st_size
        if found.st_nlink > 1:
            first_names[found.st_dev, found.st_ino] = name
    return info


def _walk(root: Path, folder: Path, without: tuple[str, ...]) -> Iterator[Path]:
    """Everything below `folder`, sorted, without following links."""
    for path in sorted(folder.iterdir(), key=lambda item: item.name):
        if any(fnmatch.fnmatch(path.relative_to(root).as_posix(), pattern) for pattern in without):
            continue
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            yield path
        if stat.S_ISDIR(mode):
            yield from _walk(root, path, without)
