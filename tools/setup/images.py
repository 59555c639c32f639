# SPDX-License-Identifier: Apache-2.0
"""The images of the test cluster and the demo, made without a container builder.

`gearshift.local/gearshift:dev` is base system, Python environment and code, in the order in which they change least: a
change of the code makes one small layer anew.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tools.setup.archives import ImageConfig, write_archive
from tools.setup.code import stage_code
from tools.setup.environments import interpreter, runtime_env
from tools.setup.layers import Tree, write_layer
from tools.setup.packages import install_packages
from tools.setup.paths import ROOT, SOURCE_ROOTS
from tools.setup.process import Word, run
from tools.setup.rootfs import USER_ID, base_layer
from tools.setup.store import Result, ensure, key_of

RECIPE: Final = "1"
APP: Final = "opt/gearshift/app"
ENV: Final = "opt/gearshift/env"
PAUSE_SOURCE: Final = ROOT / "e2e" / "cluster" / "pause.c"
ENVIRONMENT: Final = {
    "PATH": f"/{ENV}/bin:/usr/local/bin:/usr/bin:/bin",
    "PYTHONPATH": f"/{APP}",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANG": "C.UTF-8",
}
"""`python` is the environment's own; another, such as vLLM's, finds gearshift and nothing else by PYTHONPATH."""


def gearshift_image() -> Result:
    """Every process of Gearshift but vLLM itself; also the base on which vLLM's environment is mounted."""
    config = ImageConfig("gearshift.local/gearshift:dev", f"{USER_ID}:{USER_ID}", ENVIRONMENT)
    return _image("gearshift", config, [base_layer(), _environment_layer(), _code_layer()], "600 MB, seconds")


def pause_image() -> Result:
    """What holds the namespaces of a pod."""
    config = ImageConfig("gearshift.local/pause:1", "65535:65535", entrypoint=("/pause",))
    return _image("pause", config, [_pause_layer()], "1 MB")


def _image(name: str, config: ImageConfig, layers: list[Result], cost: str) -> Result:
    return Result(
        folder="images",
        name=name,
        key=key_of(RECIPE, config.document([]), config.reference, *(layer.key for layer in layers)),
        about=f"the image {config.reference} ({cost})",
        build=lambda aside: _write_image(aside, config, layers),
        suffix=".tar",
        keep=2,
    )


def _write_image(aside: Path, config: ImageConfig, layers: list[Result]) -> None:
    write_archive(aside, config, [ensure(layer) for layer in layers])


def _environment_layer() -> Result:
    environment = runtime_env()
    return _layer(
        "environment", environment.key, "the packages as a layer (90 MB)", lambda: Tree(ensure(environment), ENV)
    )


def _code_layer() -> Result:
    packages = [ROOT / name / "gearshift" for name in SOURCE_ROOTS]
    key = key_of(RECIPE, *packages, ROOT / "pyproject.toml")
    return Result("layers", "code", key, "gearshift itself as a layer (1 MB)", _build_code, ".tar")


def _pause_layer() -> Result:
    return Result("layers", "pause", key_of(RECIPE, PAUSE_SOURCE), "the pause program (1 MB)", _build_pause, ".tar")


def _layer(name: str, key: str, about: str, tree: Callable[[], Tree]) -> Result:
    return Result("layers", name, key_of(RECIPE, key), about, lambda aside: write_layer(aside, [tree()]), ".tar")


def _build_code(aside: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gearshift-code-") as folder:
        stage_code(Path(folder), ROOT)
        compile_all: list[Word] = [interpreter(), "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        run("code", [*compile_all, "-s", folder, "-p", f"/{APP}", folder])
        write_layer(aside, [Tree(Path(folder), APP)])


def _build_pause(aside: Path) -> None:
    install_packages("gcc", "libc6-dev")
    with tempfile.TemporaryDirectory(prefix="gearshift-pause-") as folder:
        run("pause", ["gcc", "-static", "-Os", "-Wall", "-Werror", "-s", "-o", Path(folder, "pause"), PAUSE_SOURCE])
        write_layer(aside, [Tree(Path(folder))])
