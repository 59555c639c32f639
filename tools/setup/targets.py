# SPDX-License-Identifier: Apache-2.0
"""The targets of set-up by name."""

from collections.abc import Callable
from dataclasses import dataclass

from tools.setup.environments import control_env, engine_env
from tools.setup.golang import ensure_hyperkube, kwok
from tools.setup.images import gearshift_image, pause_image
from tools.setup.lock import compile_requirements
from tools.setup.packages import CLUSTER_PACKAGES, install_packages
from tools.setup.rootfs import base_layer
from tools.setup.store import Result, ensure


@dataclass(frozen=True)
class Target:
    """Something that a user may ask for."""

    about: str
    run: Callable[[], None]


def _results(about: str, *results: Callable[[], Result]) -> Target:
    def run() -> None:
        for result in results:
            print(ensure(result()))

    return Target(about, run)


TARGETS: dict[str, Target] = {
    "control-env": _results("Python environment of the control plane and the checks", control_env),
    "engine-env": _results("Python environment with vLLM for the CPU", engine_env),
    "packages": Target("Debian packages for the test cluster", lambda: install_packages(*CLUSTER_PACKAGES)),
    "hyperkube": Target("Kubernetes and etcd as one program, and kubectl", lambda: print(ensure_hyperkube())),
    "kwok": _results("simulated nodes", kwok),
    "rootfs": _results("base layer of the images", base_layer),
    "lock": Target("compile requirements/*.in to requirements/*.txt", compile_requirements),
    "images": _results("archives of the images that the test cluster loads", gearshift_image, pause_image),
}
