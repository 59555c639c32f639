# SPDX-License-Identifier: Apache-2.0
"""The staged code is found by importlib as one installed distribution."""

from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from tools.setup.code import stage_code
from tools.setup.paths import SOURCE_ROOTS

PROJECT = """
[project]
name = "gearshift"
version = "1.2.3"
[project.scripts]
gearshift = "gearshift.cli.main:main"
[project.entry-points."vllm.general_plugins"]
gearshift = "gearshift.engine.plugin:register"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    for root in SOURCE_ROOTS:
        package = folder / root / "gearshift" / f"of_{root}"
        (package / "__pycache__").mkdir(parents=True)
        (package / "__init__.py").write_text(f"ROOT = {root!r}\n")
        (package / "__pycache__" / "stale.pyc").write_text("stale")
    (folder / "pyproject.toml").write_text(PROJECT)
    return folder


def test_portions_meet_in_one_folder_without_bytecode(tmp_path: Path, checkout: Path) -> None:
    stage_code(tmp_path / "app", checkout)
    staged = sorted(path.name for path in (tmp_path / "app" / "gearshift").iterdir())
    assert staged == sorted(f"of_{root}" for root in SOURCE_ROOTS)
    assert list((tmp_path / "app").rglob("*.pyc")) == []


def test_plugins_are_found_by_their_entry_points(tmp_path: Path, checkout: Path) -> None:
    stage_code(tmp_path / "app", checkout)
    (found,) = Distribution.discover(name="gearshift", path=[str(tmp_path / "app")])
    assert isinstance(found, PathDistribution)
    assert found.version == "1.2.3"
    points = {(point.group, point.name, point.value) for point in found.entry_points}
    assert points == {
        ("console_scripts", "gearshift", "gearshift.cli.main:main"),
        ("vllm.general_plugins", "gearshift", "gearshift.engine.plugin:register"),
    }
