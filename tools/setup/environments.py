# SPDX-License-Identifier: Apache-2.0
"""Python environments from requirement files with hashes.

All of them run on Debian's own interpreter where there is one, since the images hold the same, and all are relocatable:
they are built under another name, and pods see them at another path. None holds gearshift itself; a checkout is
found through PYTHONPATH, so several checkouts share one environment.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.setup.packages import install_packages
from tools.setup.paths import ROOT, cache
from tools.setup.process import SetupError, Word, output_of, run
from tools.setup.store import Result, ensure, key_of

REQUIREMENTS: Final = ROOT / "requirements"
SYSTEM_PYTHON: Final = Path("/usr/bin/python3.11")
BYTECODE: Final = {"PYC_INVALIDATION_MODE": "UNCHECKED_HASH"}
"""Environments never change once made, and image layers drop the time stamps by which Python judges bytecode."""
RECIPE: Final = "2"
"""Part of every key; raise it when the way to build changes and the inputs do not."""


def uv() -> Result:
    """The installer, in a folder of its own."""
    return Result(
        folder="tools",
        name="uv",
        key=key_of(RECIPE, REQUIREMENTS / "uv.txt"),
        about="the Python installer uv, from PyPI (25 MB, 5 s)",
        build=_build_uv,
    )


def control_env() -> Result:
    """What development, tests and the demo run on."""
    return _env("control", "Python packages for the control plane and the checks (400 MB, 20 s)", python=interpreter)


def runtime_env() -> Result:
    """What the control-plane image holds."""
    return _env("runtime", "Python packages of the control-plane image (90 MB, 10 s)")


def engine_env() -> Result:
    """vLLM for pods whose engines run on the CPU."""
    about = "vLLM's CPU build with NIXL for the engine pods (5 GB, 1 to 4 minutes)"
    return _env("engine", about, keep=2)


def interpreter() -> Path:
    """The Python that tools run on: Debian's, else the one that runs this."""
    if SYSTEM_PYTHON.exists():
        return SYSTEM_PYTHON
    if sys.version_info[:2] != (3, 11):
        raise SetupError(f"environments: Python 3.11 is needed, this is {sys.version.split()[0]} ({sys.executable})")
    return Path(sys.executable).resolve()


def _system_python() -> Path:
    """The Python that pods have: the one at the path at which Debian puts it."""
    if not SYSTEM_PYTHON.exists():
        install_packages("python3")
    if not SYSTEM_PYTHON.exists():
        raise SetupError(f"environments: pods run {SYSTEM_PYTHON}, which this machine's distribution does not bring")
    return SYSTEM_PYTHON


def _env(requirements: str, about: str, *, python: Callable[[], Path] = _system_python, keep: int = 3) -> Result:
    lock = REQUIREMENTS / f"{requirements}.txt"
    return Result(
        folder="envs",
        name=requirements,
        key=key_of(RECIPE, lock),
        about=about,
        build=lambda aside: _build_env(f"{requirements}-env", aside, lock, python()),
        keep=keep,
    )


def _build_env(name: str, aside: Path, lock: Path, base: Path) -> None:
    command = ensure(uv()) / "bin" / "uv"
    env = installer_environment()
    run(name, [command, "venv", "--relocatable", "--python", base, aside], env=env)
    python = aside / "bin" / "python"
    install: list[Word] = [command, "pip", "install", "--python", python, "--compile-bytecode"]
    run(name, [*install, "--require-hashes", "--no-deps", "-r", lock], env=env)


def installer_environment() -> dict[str, str]:
    """What uv is told beside the user's own settings, which hold where both speak."""
    ours = {"UV_CACHE_DIR": str(cache() / "uv"), "UV_NO_CONFIG": "1", "UV_SYSTEM_CERTS": "true", **BYTECODE}
    ours |= _index_of_pip() | _certificates_of_pip()
    return {name: value for name, value in ours.items() if name not in os.environ}


def _build_uv(aside: Path) -> None:
    run("uv", [*_pip(), "install", "--target", aside, "--require-hashes", "-r", REQUIREMENTS / "uv.txt"])


def _pip() -> list[Word]:
    """A pip that exists, if need be one that a throw-away environment brings."""
    for python in (sys.executable, str(SYSTEM_PYTHON), "python3"):
        if output_of([python, "-m", "pip", "--version"]):
            return [python, "-m", "pip"]
    install_packages("python3-venv")
    folder = cache() / "tools" / "pip"
    run("uv", [SYSTEM_PYTHON, "-m", "venv", "--clear", folder])
    return [folder / "bin" / "python", "-m", "pip"]


def _index_of_pip() -> dict[str, str]:
    """uv does not read pip's settings: where pip was told of another index, tell uv."""
    settings = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    index = os.environ.get("PIP_INDEX_URL") or output_of(settings)
    return {"UV_DEFAULT_INDEX": index} if index else {}


def _certificates_of_pip() -> dict[str, str]:
    bundle = os.environ.get("PIP_CERT")
    return {"SSL_CERT_FILE": bundle} if bundle else {}
