# SPDX-License-Identifier: Apache-2.0
"""An API server with the CRD, a namespace for each test, and the command line as a user calls it."""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gearshift.api import names
from gearshift.cli import kubectl
from gscluster.fast import FastCluster, fast_cluster
from tests.functional.operator.world import Operator, Space, install, operator

Json = dict[str, Any]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[FastCluster]:
    """An API server without controllers and, but for `leader`, without an operator: status is what a test writes."""
    with fast_cluster() as running:
        install(running)
        yield running


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator that leads."""
    with operator(cluster, tmp_path_factory.mktemp("operator")) as one:
        yield one


@pytest.fixture
def space(cluster: FastCluster) -> Iterator[Space]:
    """A namespace of the test's own."""
    one = Space(cluster, f"cli-{next(_numbers)}")
    try:
        yield one
    finally:
        one.kubelet.close()
        cluster.kubectl("delete", "gsvc", "--all", "-n", one.name, "--wait=false")


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed for machines."""
        return json.loads(self.out)


Run = Callable[..., Said]


@pytest.fixture
def run(space: Space, capsys: pytest.CaptureFixture[str]) -> Run:
    """``kubectl gearshift WORDS`` in the test's namespace."""

    def call(*words: str) -> Said:
        capsys.readouterr()
        try:
            code = kubectl.main(["--kubeconfig", str(space.cluster.kubeconfig), "-n", space.name, *words])
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Said(code, said.out, said.err)

    return call


def annotation(space: Space, name: str) -> str | None:
    """An annotation of the service chat."""
    found: str | None = space.get("gsvc", "chat")["metadata"].get("annotations", {}).get(name)
    return found


def override(space: Space) -> Json | None:
    """The override of the service chat."""
    found: Json | None = space.get("gsvc", "chat")["spec"].get("override")
    return found


def write_status(space: Space, **status: Any) -> None:
    """Write the status of the service chat, as an operator would."""
    space.cluster.kubectl(
        "patch", "gsvc", "chat", "-n", space.name, "--subresource=status", "--type=merge",
        "-p", json.dumps({"status": status}),
    )  # fmt: skip


def apply_as(space: Space, manager: str, **spec: Any) -> None:
    """Apply fields of the spec of the service chat server-side, as a GitOps tool would."""
    space.cluster.kubectl(
        "apply", "--server-side", f"--field-manager={manager}", "-f", "-",
        stdin=json.dumps(
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "metadata": {"name": "chat", "namespace": space.name},
                "spec": spec,
            }
        ),
    )  # fmt: skip
