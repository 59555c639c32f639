# SPDX-License-Identifier: Apache-2.0
"""Programs built from Go: the Kubernetes components as one program, and kwok for nodes by the thousand."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from tools.setup.paths import ROOT, cache
from tools.setup.process import SetupError, output_of, run
from tools.setup.store import Result, ensure, key_of, point

MINIMUM_GO: Final = (1, 24)
HYPERKUBE_SOURCE: Final = ROOT / "e2e" / "cluster" / "hyperkube"
KWOK: Final = "sigs.k8s.io/kwok/cmd/kwok@v0.7.0"


def hyperkube() -> Result:
    """etcd, API server, controller manager, scheduler, kubelet, kube-proxy and kubectl in one program."""
    sources = [path for path in sorted(HYPERKUBE_SOURCE.iterdir()) if path.suffix in {".go", ".mod", ".sum", ".sh"}]
    return Result(
        folder="bin",
        name="hyperkube",
        key=key_of(*sources),
        about="etcd and Kubernetes from source by Go (140 MB; the first time 0.7 GB of modules and 5 minutes)",
        build=_build_hyperkube,
    )


def kwok() -> Result:
    """Simulated nodes on a real API server."""
    return Result(
        folder="bin",
        name="kwok",
        key=key_of(KWOK),
        about="kwok from source by Go (80 MB; the first time 2 minutes)",
        build=_build_kwok,
    )


def ensure_hyperkube() -> Path:
    """Makes hyperkube exist, with `kubectl` as a link to it since it acts by its name; returns its path."""
    path = ensure(hyperkube())
    point(cache() / "bin" / "kubectl", "hyperkube")
    return path


def go_version(text: str) -> tuple[int, int]:
    """Major and minor of what `go version` prints. Raises SetupError when the text holds none."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    if found is None:
        raise SetupError(f"golang: {text!r} is not what `go version` prints")
    return int(found[1]), int(found[2])


def _build_hyperkube(aside: Path) -> None:
    run("hyperkube", ["sh", HYPERKUBE_SOURCE / "build.sh", aside], env=_go_environment())


def _build_kwok(aside: Path) -> None:
    folder = aside.with_name(f"{aside.name}.d")
    try:
        run("kwok", [_go(), "install", "-trimpath", "-ldflags", "-s -w", KWOK], env=_go_environment(GOBIN=str(folder)))
        (folder / "kwok").rename(aside)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _go_environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(_go().parent), os.environ.get("PATH", os.defpath)])
    return {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "PATH": path, **more}


def _go() -> Path:
    """The go command. Raises SetupError when it is missing or too old."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if found is None:
        raise SetupError("golang: Go 1.24 or newer is needed, and `go` is neither on PATH nor in /usr/local/go/bin")
    version = go_version(output_of([found, "env", "GOVERSION"]) or "")
    if version < MINIMUM_GO:
        raise SetupError(f"golang: Go 1.24 or newer is needed; {found} is {version[0]}.{version[1]}")
    return Path(found)
