# SPDX-License-Identifier: Apache-2.0
"""The `kubectl` of the cluster bound to one kubeconfig: how this package and the tests speak to an API server."""

import json
from pathlib import Path
from typing import Any

from gscluster import paths
from gscluster.shell import run, succeeds
from gscluster.waiting import wait_for


class Kubectl:
    """Call it with the words after `kubectl`.

    `cache` is the folder for what it learns of the API; without one, that of the user, which may know another cluster
    that had the same address.
    """

    def __init__(self, kubeconfig: Path, cache: Path | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.cache_option: list[str | Path] = [] if cache is None else ["--cache-dir", cache]

    def argv(self, *words: str) -> list[str | Path]:
        return [paths.kubectl(), "--kubeconfig", self.kubeconfig, *self.cache_option, *words]

    def __call__(self, *words: str, stdin: str | None = None, timeout_seconds: float = 180) -> str:
        """Return the standard output; raise ClusterError with the error output on a status other than 0."""
        return run(self.argv(*words), stdin=stdin, timeout_seconds=timeout_seconds)

    def succeeds(self, *words: str) -> bool:
        return succeeds(self.argv(*words))

    def json(self, *words: str) -> Any:
        """Return what `kubectl WORDS -o json` prints."""
        return json.loads(self(*words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects given as dictionaries."""
        self("apply", "-f", "-", stdin=_as_list(objects))

    def apply_server_side(self, *objects: dict[str, Any]) -> str:
        """Apply objects server-side; return what `kubectl` says about them."""
        return self("apply", "--server-side", "-f", "-", stdin=_as_list(objects))

    def apply_crds(self, folder: Path) -> None:
        """Apply the custom resource definitions in a folder; return when the API server serves them.

        They are asked for again, since `kubectl wait` fails at once on one that has no condition yet.
        """
        self("apply", "--server-side", "--force-conflicts", "-f", str(folder))
        wanted = ("wait", "--for=condition=Established", "-f", str(folder), "--timeout=10s")
        wait_for(lambda: self.succeeds(*wanted), f"the definitions in {folder}", timeout_seconds=120)

    def create(self, *objects: dict[str, Any], timeout_seconds: float = 300) -> None:
        """Create objects that must not exist, which for thousands is faster than `apply`."""
        self("create", "-f", "-", stdin=_as_list(objects), timeout_seconds=timeout_seconds)


def _as_list(objects: tuple[dict[str, Any], ...]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
