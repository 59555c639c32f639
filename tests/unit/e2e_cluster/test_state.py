# SPDX-License-Identifier: Apache-2.0
"""What is written down about clusters, and the lock that keeps their starts apart."""

import threading
from pathlib import Path

import pytest

from gscluster import state
from gscluster.errors import ClusterError
from gscluster.processes import boot_id
from gscluster.settings import ClusterSettings
from gscluster.state import State


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "clusters"
    monkeypatch.setenv("GEARSHIFT_CLUSTER_STATE", str(root))
    return root


def test_a_saved_state_is_loaded(tmp_path: Path) -> None:
    saved = State(ClusterSettings(name="one", nodes=3), index=2, boot=boot_id(), started=True)
    saved.save(tmp_path)
    assert State.load(tmp_path) == saved
    assert saved.is_of_this_boot


def test_no_state_is_none(tmp_path: Path) -> None:
    assert State.load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{}", '{"settings": {}, "unknown": 1}', '{"settings": {"nodes": 0}}'])
def test_a_damaged_state_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ClusterError):
        State.load(tmp_path)


def test_made_folders_go_with_the_last_cluster(root: Path, tmp_path: Path) -> None:
    (root / "one").mkdir(parents=True)
    (tmp_path / "present").mkdir()
    state.make_folders([tmp_path / "new/inner", tmp_path / "present"])
    state.make_folders([tmp_path / "new/inner", tmp_path / "later"])
    state.remove_folders()
    assert (tmp_path / "new/inner").is_dir()
    (root / "one").rmdir()
    state.remove_folders()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters", "present"]
    assert list(root.iterdir()) == []


def test_a_made_folder_that_somebody_uses_stays(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    state.make_folders([tmp_path / "new"])
    (tmp_path / "new/file").touch()
    state.remove_folders()
    assert (tmp_path / "new/file").exists()


def test_the_lock_leaves_nothing(root: Path) -> None:
    with state.lock():
        assert root.is_dir()
    assert not root.exists()


def test_the_lock_is_held_by_one_at_a_time(root: Path) -> None:
    waiting, inside = threading.Event(), threading.Event()

    def second() -> None:
        waiting.set()
        with state.lock():
            inside.set()

    with state.lock():
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait(10)
        assert not inside.wait(0.05)
    assert inside.wait(10)
    thread.join()
    assert not root.exists()
