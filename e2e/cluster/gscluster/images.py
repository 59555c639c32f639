# SPDX-License-Identifier: Apache-2.0
"""Put image archives into the containerd of every node, all nodes at once."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gscluster.errors import ClusterError
from gscluster.spaces import Space

IMPORT_SECONDS = 600
CTR = ("ctr", "--namespace", "k8s.io", "images")


def import_everywhere(spaces: Sequence[Space], archives: Iterable[Path]) -> None:
    """Import every archive on every node; raise ClusterError when one cannot be."""
    todo = list(archives)
    with ThreadPoolExecutor(max_workers=max(1, len(spaces))) as pool:
        for done in [pool.submit(_import_all, space, todo) for space in spaces]:
            done.result()


def _import_all(space: Space, archives: Sequence[Path]) -> None:
    for archive in archives:
        space.run([*CTR, "import", archive], timeout_seconds=IMPORT_SECONDS)


def references(space: Space) -> list[str]:
    """Return the names of the images that a node has."""
    return [name for name in space.run([*CTR, "list", "--quiet"]).split() if not name.startswith("sha256:")]


def require(space: Space, reference: str) -> None:
    """Raise ClusterError when a node lacks an image without which nothing runs."""
    found = references(space)
    if reference not in found:
        raise ClusterError(
            f"{space.name} has no image {reference} (it has: {', '.join(found) or 'none'}); `make cluster` builds it"
        )
