# SPDX-License-Identifier: Apache-2.0
"""Where things are: programs and image archives that set-up has put into the cache, and the folder of a running
cluster."""

import os
import re
import shutil
from pathlib import Path

from gscluster.errors import ClusterError

SET_UP_HINT = "run `make cluster` once: it does the set-up"
PACKAGE_OF_PROGRAM = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "openssl": "openssl",
}
CNI_FOLDER = Path("/usr/lib/cni")


def cache_folder() -> Path:
    return Path(os.environ.get("GEARSHIFT_CACHE", "/var/cache/gearshift"))


def state_root() -> Path:
    """The folder that holds one folder for each running cluster; on disk, since images and logs go there."""
    return Path(os.environ.get("GEARSHIFT_CLUSTER_STATE", "/var/lib/gearshift-clusters"))


def cached_program(name: str) -> Path:
    """The path of a program that set-up has built, as `hyperkube` or `kwok`."""
    path = cache_folder() / "bin" / name
    if not path.exists():
        raise ClusterError(f"{path} does not exist: {SET_UP_HINT}")
    return path


def hyperkube() -> Path:
    """The program itself, not the link to it, so that a rebuild does not change a running cluster."""
    return cached_program("hyperkube").resolve()


def kubectl() -> Path:
    return cached_program("kubectl")


def image_archives() -> list[Path]:
    """The image archives (`docker save` form) that every node gets: `NAME.tar`, not the `NAME-HASH.tar` that they link
    to."""
    found = sorted((cache_folder() / "images").glob("*.tar"))
    archives = [path for path in found if not re.search(r"-[0-9a-f]{12}$", path.stem)]
    if not archives:
        raise ClusterError(f"no image archive in {cache_folder() / 'images'}: {SET_UP_HINT}")
    return archives


def require_programs() -> None:
    """Raise ClusterError that names every missing program and the Debian package that has it."""
    missing = {name: package for name, package in PACKAGE_OF_PROGRAM.items() if shutil.which(name) is None}
    if not (CNI_FOLDER / "bridge").exists():
        missing[str(CNI_FOLDER / "bridge")] = "containernetworking-plugins"
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise ClusterError(f"not installed: {', '.join(missing)}; apt-get install --no-install-recommends {packages}")
    hyperkube()
    kubectl()
