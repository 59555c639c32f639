# SPDX-License-Identifier: Apache-2.0
"""A change of the code makes a new image, and of its layers only the one with the code."""

from pathlib import Path

import pytest

from tools.setup import images, store
from tools.setup.paths import SOURCE_ROOTS


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own, and a store whose layers are their names."""
    folder = tmp_path / "checkout"
    for root in SOURCE_ROOTS:
        (folder / root / "gearshift" / root).mkdir(parents=True)
        (folder / root / "gearshift" / root / "__init__.py").write_text("")
    (folder / "pyproject.toml").write_text('[project]\nname = "gearshift"\nversion = "1.2.3"\n')
    monkeypatch.setattr(images, "ROOT", folder)
    monkeypatch.setenv("GEARSHIFT_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the layers that are built, each as its name in a file; the image itself is packed as ever."""
    names: list[str] = []

    def build(result: store.Result) -> Path:
        if not result.path.exists():
            names.append(result.name)
            result.path.parent.mkdir(parents=True, exist_ok=True)
            result.path.write_text(result.name)
        return result.path

    monkeypatch.setattr(images, "ensure", build)
    return names


def test_a_change_of_the_code_makes_one_layer(checkout: Path, built: list[str]) -> None:
    before = store.ensure(images.gearshift_image())
    assert built == ["base", "environment", "code"]
    (checkout / "router" / "gearshift" / "router" / "__init__.py").write_text("CHANGED = True\n")
    after = store.ensure(images.gearshift_image())
    assert built == ["base", "environment", "code", "code"]
    assert after != before


def test_nothing_is_made_when_nothing_changed(checkout: Path, built: list[str]) -> None:
    path = store.ensure(images.gearshift_image())
    built.clear()
    assert store.ensure(images.gearshift_image()) == path
    assert built == []
