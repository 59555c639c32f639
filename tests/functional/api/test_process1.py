# SPDX-License-Identifier: Apache-2.0
"""A container's process 1 that is told to end while Python starts, in a process namespace of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.manifests.meta import Installation, Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.manifests.router import build_router

ROOT = Path(__file__).parents[3]
INTERPRETER = Path(sys.executable).resolve()
OWNER = Owner(
    "prod",
    "chat",
    "uid-1",
    InferenceServiceSpec.model_validate({"model": {"uri": "hf://org/llama"}, "engine": {"kind": "Simulated"}}),
)
INSTALLATION = Installation("image", None, None, "IfNotPresent", "gearshift-system", "operator", 1, None)


def engine_pod(section: str) -> list[str]:
    pod = build_pod(OWNER, INSTALLATION, 0, Role.UNIFIED, Layout.TP)
    return [str(word) for word in pod["spec"][section][0]["command"]]


def router() -> list[str]:
    pod = build_router(OWNER, INSTALLATION)["spec"]["template"]
    return [str(word) for word in pod["spec"]["containers"][0]["command"]]


def operator() -> list[str]:
    deployment = yaml.safe_load((ROOT / "config/operator/deployment.yaml").read_text())
    return [str(word) for word in deployment["spec"]["template"]["spec"]["containers"][0]["command"]]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GEARSHIFT", "KUBE", "POD_"))}
    sources = os.pathsep.join(str(ROOT / part) for part in ("core", "operator", "sidecar", "router"))
    return {**kept, "PYTHONPATH": sources, "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}"}


def until_python(unshare: int) -> int:
    """Pid of process 1 of the namespace, as soon as it is Python and nothing more."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split():
            if Path(f"/proc/{pid}/exe").resolve() == INTERPRETER:
                return int(pid)
    raise AssertionError("Python was not started within 20 s")


@pytest.mark.functional
@pytest.mark.parametrize(
    "command",
    [lambda: engine_pod("containers"), lambda: engine_pod("initContainers"), router, operator],
    ids=["engine", "sidecar", "router", "operator"],
)
def test_a_signal_before_the_first_import_ends_the_container_at_once(command: Callable[[], list[str]]) -> None:
    isolated = ["unshare", "--pid", "--fork", "--kill-child", *command()]
    with subprocess.Popen(isolated, env=environment(), stderr=subprocess.PIPE, text=True) as running:
        try:
            os.kill(until_python(running.pid), signal.SIGTERM)
            _, said = running.communicate(timeout=20)
        finally:
            running.kill()
    assert (running.returncode, said) == (128 + signal.SIGTERM, "")
