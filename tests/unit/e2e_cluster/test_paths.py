# SPDX-License-Identifier: Apache-2.0
"""Programs and images come from the cache; what is missing is named together with the way to get it."""

from pathlib import Path

import pytest

from gscluster import paths
from gscluster.errors import ClusterError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEARSHIFT_CACHE", str(tmp_path))
    (tmp_path / "images").mkdir()
    (tmp_path / "bin").mkdir()
    return tmp_path


def test_an_archive_is_taken_by_its_name_and_not_by_its_hash(cache: Path) -> None:
    (cache / "images/gearshift-0123456789ab.tar").touch()
    (cache / "images/gearshift.tar").symlink_to("gearshift-0123456789ab.tar")
    (cache / "images/pause.tar").touch()
    assert [path.name for path in paths.image_archives()] == ["gearshift.tar", "pause.tar"]


def test_no_archive_is_an_error_with_the_way_out() -> None:
    with pytest.raises(ClusterError, match=r"no image archive in .*images: run `make cluster`"):
        paths.image_archives()


def test_hyperkube_is_the_program_behind_the_link(cache: Path) -> None:
    (cache / "bin/hyperkube-0123456789ab").touch()
    (cache / "bin/hyperkube").symlink_to("hyperkube-0123456789ab")
    assert paths.hyperkube() == cache.resolve() / "bin/hyperkube-0123456789ab"


def test_a_missing_program_of_the_cache_is_named(cache: Path) -> None:
    with pytest.raises(ClusterError, match=r"bin/kwok does not exist: run `make cluster`"):
        paths.cached_program("kwok")


def test_missing_packages_are_named_together(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(ClusterError, match=r"apt-get install .*conntrack containerd iproute2 iptables openssl runc"):
        paths.require_programs()
