# SPDX-License-Identifier: Apache-2.0
"""The bytes of a layer depend on what it holds and on nothing else."""

import os
import tarfile
from pathlib import Path

from tools.setup.layers import Tree, write_layer


def members(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return {member.name: member for member in archive}


def fill(folder: Path, names: list[str]) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    return folder


def test_same_content_gives_same_bytes(tmp_path: Path) -> None:
    names = ["b/two", "a", "b/one"]
    first, second = fill(tmp_path / "1", names), fill(tmp_path / "2", list(reversed(names)))
    os.utime(second / "a", (1, 1))
    write_layer(tmp_path / "1.tar", [Tree(first, "opt/x")])
    write_layer(tmp_path / "2.tar", [Tree(second, "opt/x")])
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()


def test_parents_come_first_and_once(tmp_path: Path) -> None:
    one, two = fill(tmp_path / "1", ["f"]), fill(tmp_path / "2", ["d/g"])
    write_layer(tmp_path / "l.tar", [Tree(one, "opt/x/one"), Tree(two, "opt/x/two")])
    with tarfile.open(tmp_path / "l.tar") as archive:
        names = archive.getnames()
    assert names == ["opt", "opt/x", "opt/x/one", "opt/x/one/f", "opt/x/two", "opt/x/two/d", "opt/x/two/d/g"]


def test_a_root_tree_has_no_folder_of_its_own(tmp_path: Path) -> None:
    write_layer(tmp_path / "l.tar", [Tree(fill(tmp_path / "1", ["pause"]))])
    assert list(members(tmp_path / "l.tar")) == ["pause"]


def test_modes_links_and_owners(tmp_path: Path) -> None:
    folder = fill(tmp_path / "1", ["tool", "plain"])
    (folder / "tool").chmod(0o4755)
    (folder / "plain").chmod(0o640)
    (folder / "soft").symlink_to("/usr/bin/python3.11")
    os.link(folder / "tool", folder / "zz-same")
    write_layer(tmp_path / "l.tar", [Tree(folder)])
    found = members(tmp_path / "l.tar")
    assert found["tool"].mode == 0o4755
    assert found["plain"].mode == 0o640
    assert (found["soft"].type, found["soft"].linkname) == (tarfile.SYMTYPE, "/usr/bin/python3.11")
    assert (found["zz-same"].type, found["zz-same"].linkname) == (tarfile.LNKTYPE, "tool")
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {(0, 0, 0)}


def test_what_is_left_out(tmp_path: Path) -> None:
    folder = fill(tmp_path / "1", ["dev/null", "usr/share/doc/x/copyright", "usr/share/y"])
    os.mkfifo(folder / "pipe")
    write_layer(tmp_path / "l.tar", [Tree(folder, without=("dev/*", "usr/share/doc/*"))])
    assert list(members(tmp_path / "l.tar")) == ["dev", "usr", "usr/share", "usr/share/doc", "usr/share/y"]
