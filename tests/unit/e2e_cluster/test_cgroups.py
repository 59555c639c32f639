# SPDX-License-Identifier: Apache-2.0
"""The folders of a control group, on both versions, over a folder that plays /sys/fs/cgroup."""

from pathlib import Path

import pytest

from gscluster.cgroups import ControlGroup
from gscluster.errors import ClusterError


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    for tree in ("cpu,cpuacct", "memory", "pids", "unified"):
        (tmp_path / tree).mkdir()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    return tmp_path


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids\n")
    (tmp_path / "gs-one").mkdir()
    (tmp_path / "gs-one/cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return tmp_path


def test_version_1_has_the_nodes_in_every_tree_and_the_processes_in_one(version_1: Path) -> None:
    group = ControlGroup("one", version_1)
    group.create(["node-1"])
    found = {str(path.relative_to(version_1)) for path in group.folders()}
    trees = ("cpu,cpuacct", "memory", "pids")
    nodes = {f"{tree}/gs-one{below}" for tree in trees for below in ("", "/node-1")}
    assert found == nodes | {"pids/gs-one/system"}
    assert group.system == version_1 / "pids/gs-one/system"


def test_version_2_delegates_controllers_and_keeps_processes_out_of_inner_groups(version_2: Path) -> None:
    group = ControlGroup("one", version_2)
    group.create(["node-1", "node-2"])
    assert (version_2 / "gs-one/cgroup.subtree_control").read_text() == "+cpuset +cpu +io +memory +pids"
    assert sorted(path.name for path in (version_2 / "gs-one").iterdir() if path.is_dir()) == [
        "node-1",
        "node-2",
        "system",
    ]
    assert group.system == version_2 / "gs-one/system"


def test_the_kubelet_gets_the_path_below_the_trees(version_2: Path) -> None:
    assert ControlGroup("one", version_2).node_path("node-1") == "/gs-one/node-1"


def test_processes_are_found_at_every_depth(version_1: Path) -> None:
    group = ControlGroup("one", version_1)
    group.create(["node-1"])
    (group.system / "cgroup.procs").write_text("11\n12\n")
    pod = version_1 / "memory/gs-one/node-1/kubepods/pod"
    pod.mkdir(parents=True)
    (pod / "cgroup.procs").write_text("13\n11\n")
    (version_1 / "memory/cgroup.procs").write_text("1\n")
    assert group.process_ids() == {11, 12, 13}


def test_removal_takes_the_deepest_folder_first_and_is_repeatable(version_1: Path) -> None:
    group = ControlGroup("one", version_1)
    group.create(["node-1"])
    (version_1 / "memory/gs-one/node-1/kubepods").mkdir()
    group.remove()
    group.remove()
    assert group.folders() == []
    assert (version_1 / "memory").is_dir()


def test_a_machine_without_control_groups_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no control groups"):
        ControlGroup("one", tmp_path).create([])
