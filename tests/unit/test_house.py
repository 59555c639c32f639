# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that no linter knows: a namespace without `__init__.py`, typed packages, small files, clean
requirement files."""

import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.setup.paths import ROOT, SOURCE_ROOTS

MAXIMUM_LINES = 350
SOURCES = {".py", ".go", ".sh", ".c"}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def files() -> list[Path]:
    """All files of the checkout that git has or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for name in listing.stdout.splitlines() if (path := ROOT / name).is_file()]


def portions() -> list[Path]:
    return [path for root in SOURCE_ROOTS for path in sorted((ROOT / root / "gearshift").iterdir()) if path.is_dir()]


def entry_points() -> Iterator[tuple[str, str]]:
    project = PROJECT["project"]
    for group, members in {"scripts": project.get("scripts", {}), **project.get("entry-points", {})}.items():
        for name, target in members.items():
            yield f"{group}/{name}", target


@pytest.mark.parametrize("folder", [*(f"{root}/gearshift" for root in SOURCE_ROOTS), *SOURCE_ROOTS, "tests", "e2e"])
def test_namespace_folders_have_no_init(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


def test_tests_have_no_init() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_every_portion_is_typed() -> None:
    assert [path for path in portions() if path.name != "__pycache__" and not (path / "py.typed").exists()] == []


def test_every_portion_is_under_the_import_rules() -> None:
    found = {f"gearshift.{path.name}" for path in portions() if path.name != "__pycache__"}
    assert set(PROJECT["tool"]["importlinter"]["root_packages"]) == found


def test_the_wheel_and_the_tools_agree_on_the_source_roots() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert wheel == [f"{root}/gearshift" for root in SOURCE_ROOTS]
    assert PROJECT["tool"]["mypy"]["mypy_path"].split(":")[: len(SOURCE_ROOTS)] == list(SOURCE_ROOTS)
    assert PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"][: len(SOURCE_ROOTS)] == list(SOURCE_ROOTS)
    assert f"for folder in {' '.join(SOURCE_ROOTS)} " in (ROOT / "tools" / "run").read_text()


def test_entry_points_name_modules_that_exist() -> None:
    modules = {name: target.partition(":")[0] for name, target in entry_points()}
    assert [name for name, module in modules.items() if importlib.util.find_spec(module) is None] == []


def test_source_files_are_small() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in files() if path.suffix in SOURCES}
    assert {str(path.relative_to(ROOT)): size for path, size in sizes.items() if size > MAXIMUM_LINES} == {}


def test_source_files_name_their_license() -> None:
    heads = {path: path.read_text().splitlines()[:3] for path in files() if path.suffix in SOURCES}
    bare = [path for path, head in heads.items() if not any("SPDX-License-Identifier: Apache-2.0" in x for x in head)]
    assert [str(path.relative_to(ROOT)) for path in bare if path.stat().st_size > 0] == []


def test_no_lock_file_with_download_hosts() -> None:
    locks = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"}
    assert [path for path in files() if path.name in locks] == []


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_requirement_files_have_hashes_and_no_hosts(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links", text) == []
    blocks = [block for block in re.split(r"\n(?=\S)", text) if block and not block.startswith("#")]
    assert [block.splitlines()[0] for block in blocks if "==" not in block or "--hash=sha256:" not in block] == []


def test_the_image_runs_the_versions_that_were_checked() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / "requirements" / name).read_text(), flags=re.MULTILINE))

    assert pins("runtime.txt") <= pins("control.txt")
