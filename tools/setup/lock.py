# SPDX-License-Identifier: Apache-2.0
"""Compiles the requirement files: names in `*.in`, exact versions with hashes in `*.txt`, no index host in either."""

from typing import Final

from tools.setup.environments import REQUIREMENTS, installer_environment, uv
from tools.setup.process import Word, run, say
from tools.setup.store import ensure

OPTIONS: Final = (
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-annotate",
    "--no-header",
    "--quiet",
    "--upgrade",
    "--python-version",
    "3.11",
)


def compile_requirements() -> None:
    """Writes all requirement files anew. The runtime takes its versions from what the checks ran with."""
    extras: dict[str, list[Word]] = {
        "uv": [],
        "control": [],
        "runtime": ["--constraint", REQUIREMENTS / "control.txt"],
        "engine": ["--override", REQUIREMENTS / "engine.overrides"],
    }
    for name, extra in extras.items():
        say(f"==> lock: requirements/{name}.txt")
        _compile(name, extra)


def _compile(name: str, extra: list[Word]) -> None:
    source, target = REQUIREMENTS / f"{name}.in", REQUIREMENTS / f"{name}.txt"
    command: list[Word] = [ensure(uv()) / "bin" / "uv", "pip", "compile", *OPTIONS, *extra, source, "-o", target]
    run("lock", command, env=installer_environment())
