# SPDX-License-Identifier: Apache-2.0
"""Bad settings are refused with the value that is bad."""

import pytest

from gscluster.errors import ClusterError
from gscluster.settings import ClusterSettings


@pytest.mark.parametrize("name", ["", "Upper", "9first", "a/b", "..", "a" * 21, "a b"])
def test_a_name_that_is_no_folder_and_group_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="name '"):
        ClusterSettings(name=name)


@pytest.mark.parametrize("nodes", [0, 10, -1])
def test_nodes_out_of_range_are_refused(nodes: int) -> None:
    with pytest.raises(ClusterError, match=f"nodes {nodes}: want 1 to 9"):
        ClusterSettings(nodes=nodes)


def test_gpus_out_of_range_are_refused() -> None:
    with pytest.raises(ClusterError, match="gpus per node 65"):
        ClusterSettings(gpus_per_node=65)


def test_a_grace_shorter_than_two_reports_is_refused() -> None:
    with pytest.raises(ClusterError, match="node monitor grace 9 s"):
        ClusterSettings(node_monitor_grace_seconds=9)


def test_differences_name_field_and_both_values() -> None:
    own = ClusterSettings(nodes=3)
    assert own.differences(ClusterSettings(nodes=3)) == []
    assert own.differences(ClusterSettings(nodes=2, gpus_per_node=4)) == ["nodes: 3, not 2", "gpus_per_node: 8, not 4"]
