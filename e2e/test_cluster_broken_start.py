# SPDX-License-Identifier: Apache-2.0
"""A start that fails, is interrupted or meets a broken cluster says what is wrong and leaves nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gscluster import leaks, lifecycle, network, paths, state
from gscluster.addresses import Addresses
from gscluster.errors import ClusterError
from gscluster.settings import ClusterSettings
from gscluster.waiting import wait_for

pytestmark = pytest.mark.e2e

SETTINGS = ClusterSettings(name="broken", nodes=1)


@pytest.fixture
def pause_archive() -> Iterator[list[Path]]:
    """The one image that a cluster needs; whatever a failing test has started ends here."""
    yield [paths.cache_folder() / "images/pause.tar"]
    lifecycle.down(SETTINGS.name)


def test_a_component_that_fails_is_named_with_its_last_words(
    pause_archive: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "containerd"
    broken.write_text("#!/bin/sh\necho 'the disk is made of cheese' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    chosen: list[Addresses] = []
    choose = network.free_addresses

    def remembered() -> Addresses:
        chosen.append(choose())
        return chosen[-1]

    monkeypatch.setattr(network, "free_addresses", remembered)
    with pytest.raises(ClusterError, match=r"did not start: node-1.containerd does not run") as raised:
        lifecycle.up(SETTINGS, pause_archive)
    assert "the disk is made of cheese" in str(raised.value)
    assert leaks.report(SETTINGS.name, *chosen) == []


def test_a_missing_image_ends_the_start(tmp_path: Path, pause_archive: list[Path]) -> None:
    with pytest.raises(ClusterError, match=r"node-1 has no image gearshift.local/pause:1"):
        lifecycle.up(SETTINGS, [])
    assert lifecycle.find(SETTINGS.name) is None


def test_a_start_that_was_killed_is_taken_back_by_the_next(pause_archive: list[Path]) -> None:
    process = _start_half_way(pause_archive[0])
    process.send_signal(signal.SIGKILL)
    process.wait()
    addresses = _addresses_of(SETTINGS.name)
    assert leaks.report(SETTINGS.name, addresses) != []
    with pytest.raises(ClusterError, match=r"its start did not come to its end"):
        lifecycle.up(SETTINGS, pause_archive)
    assert leaks.report(SETTINGS.name, addresses) == []


def test_an_interrupted_start_leaves_nothing(pause_archive: list[Path]) -> None:
    process = _start_half_way(pause_archive[0])
    addresses = _addresses_of(SETTINGS.name)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert leaks.report(SETTINGS.name, addresses) == []


def test_a_cluster_whose_component_has_died_is_named_and_removed(pause_archive: list[Path]) -> None:
    cluster = lifecycle.up(SETTINGS, pause_archive).cluster
    cluster.processes.kill("kube-scheduler")
    with pytest.raises(ClusterError, match=r"broken; now nothing of it is left.*\n.*kube-scheduler has ended"):
        lifecycle.up(SETTINGS, pause_archive)
    assert leaks.report(SETTINGS.name, cluster.addresses) == []


def _addresses_of(name: str) -> Addresses:
    cluster = lifecycle.find(name)
    assert cluster is not None
    return cluster.addresses


def _start_half_way(archive: Path) -> subprocess.Popen[bytes]:
    """Return a process that is starting the cluster and has come as far as the API server."""
    command = [
        sys.executable,
        "-m",
        "gscluster",
        "--name",
        SETTINGS.name,
        "up",
        "--nodes",
        "1",
        "--image",
        str(archive),
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(lifecycle.__file__).parents[1])}
    process = subprocess.Popen(command, env=environment)
    record = state.folder_of(SETTINGS.name) / "processes/kube-apiserver.json"
    wait_for(record.exists, "the API server's start", timeout_seconds=180, interval_seconds=0.01)
    return process
