# SPDX-License-Identifier: Apache-2.0
"""Debian packages: only those that are missing, and none of them may start a service of its own."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tools.setup.process import SetupError, output_of, run, say
from tools.setup.store import locked

CLUSTER_PACKAGES: Final = (
    "ca-certificates", "conntrack", "containerd", "containernetworking-plugins", "debootstrap", "gcc", "iproute2",
    "iptables", "kmod", "libc6-dev", "make", "openssl", "procps", "prometheus", "runc", "util-linux",
)  # fmt: skip
"""What the test cluster, the images and the demo take from the distribution."""

LOCK_WAIT: Final = ("-o", "DPkg::Lock::Timeout=300")
POLICY: Final = Path("/usr/sbin/policy-rc.d")
NO_SERVICES: Final = "#!/bin/sh\n# Written by gearshift's set-up: no service may start while it installs.\nexit 101\n"


def install_packages(*names: str) -> None:
    """Installs those packages that are not there; says which. Raises SetupError without apt or without root."""
    if not missing(names):
        return
    with locked("packages"):
        absent = missing(names)
        if absent:
            _install(absent)


def missing(names: Iterable[str]) -> list[str]:
    """Those names that dpkg does not know as installed, in order."""
    known = output_of(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"]) or ""
    installed = {line.split()[0] for line in known.splitlines() if line.endswith(" installed")}
    return sorted(set(names) - installed)


def _install(names: list[str]) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SetupError(f"packages: {', '.join(names)} must be installed, which needs Debian's apt-get and root")
    say(f"==> packages: {' '.join(names)} from the distribution (up to 400 MB, about 1 minute)")
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *LOCK_WAIT, *names]
    env = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_MODE": "l"}
    with _services_held():
        try:
            run("packages", install, env=env)
        except SetupError:
            say("  packages: the package lists look old; reading them anew")
            run("packages", ["apt-get", "update"], env=env)
            run("packages", install, env=env)


@contextlib.contextmanager
def _services_held() -> Iterator[None]:
    """While it lasts, packages that bring a daemon do not start it. A policy of the machine's own is left alone."""
    if POLICY.exists() and POLICY.read_text() != NO_SERVICES:
        yield
        return
    POLICY.write_text(NO_SERVICES)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
