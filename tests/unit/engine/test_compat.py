# SPDX-License-Identifier: Apache-2.0
"""Choosing by version, and noticing what a version lacks."""

from pathlib import Path

import pytest

from gearshift.engine.compat import SUPPORTED, UnsupportedVersionError, select
from gearshift.engine.compat.symbols import Function, Symbol, broken

SOURCE = """
_GROUP: "Thing | None" = None


def build(ranks, *, backend):
    return Thing()


class Thing(Base):
    declared: int = 3

    def __init__(self):
        self.made, self.counted = 1, 0

    async def call(self, method: str, *args, engine):
        self.counted += 1
"""


@pytest.mark.parametrize(
    ("version", "minor"), [("0.26.0", "0.26"), ("0.26.3", "0.26"), ("0.32.0+cpu", "0.32"), ("0.32rc1", "0.32")]
)
def test_a_supported_version_is_found_by_its_minor(version: str, minor: str) -> None:
    assert select(version).minor == minor


@pytest.mark.parametrize("version", ["0.27.0", "0.3.2", "0.320.1", "1.26.0", "dev", ""])
def test_another_version_is_refused_by_naming_those_that_work(version: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"only 0\.26, 0\.32 \(any patch\)"):
        select(version)


def test_each_module_says_its_own_minor() -> None:
    assert [select(minor).minor for minor in SUPPORTED] == list(SUPPORTED)


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "thing.py").write_text(SOURCE)
    return tmp_path


def test_what_is_there_is_not_broken(vllm: Path) -> None:
    symbol = Symbol(
        "v1.thing", "Thing", methods=(("call", ("method", "engine")),), assigned=("made", "counted", "declared")
    )
    build, group = Function("v1.thing", "build", ("ranks", "backend")), Function("v1.thing", "_GROUP")
    assert broken(vllm, (symbol, build, group)) == []


def test_a_package_is_read_from_its_init(vllm: Path) -> None:
    (vllm / "v1" / "__init__.py").write_text(SOURCE)
    assert broken(vllm, (Function("v1", "build", ("ranks",)),)) == []


@pytest.mark.parametrize(
    ("symbol", "problem"),
    [
        (Symbol("v1.other", "Thing"), "vllm.v1.other.Thing: no module other.py"),
        (Symbol("v1.thing", "Other"), "vllm.v1.thing.Other: no such class"),
        (Symbol("v1.thing", "Thing", methods=(("gone", ()),)), "vllm.v1.thing.Thing.gone: no such method"),
        (Symbol("v1.thing", "Thing", methods=(("call", ("x",)),)), "vllm.v1.thing.Thing.call: no parameter 'x'"),
        (Symbol("v1.thing", "Thing", assigned=("lost",)), "vllm.v1.thing.Thing.lost: never assigned"),
        (Function("v1.thing", "demolish", ()), "vllm.v1.thing.demolish: no such function"),
        (Function("v1.thing", "build", ("x",)), "vllm.v1.thing.build: no parameter 'x'"),
        (Function("v1.thing", "_OTHER"), "vllm.v1.thing._OTHER: never assigned"),
    ],
)
def test_what_is_missing_is_named(vllm: Path, symbol: Symbol | Function, problem: str) -> None:
    assert broken(vllm, (symbol,)) == [problem]
