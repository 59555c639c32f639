# SPDX-License-Identifier: Apache-2.0
"""Up, down and find: the only ways to get and to end a cluster, each under the lock and each safe to repeat."""

import contextlib
import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from gscluster import network, paths, state
from gscluster.addresses import Addresses
from gscluster.cgroups import ControlGroup
from gscluster.cluster import Cluster
from gscluster.errors import ClusterError
from gscluster.node import MOUNTED
from gscluster.processes import boot_id
from gscluster.settings import ClusterSettings


@dataclasses.dataclass(frozen=True)
class Up:
    """What `up` came to: the cluster, and whether it ran already."""

    cluster: Cluster
    ran_already: bool


def up(settings: ClusterSettings, archives: Sequence[Path] | None = None) -> Up:
    """Start a cluster with the images of `archives` (by default all that set-up has made), or find the running one
    with equal settings.

    Raise ClusterError when one with other settings runs (it stays), when the one found is broken, or when the start
    fails; nothing is left in the last two cases and the message holds the reason and the last log lines of the
    components at fault.
    """
    paths.require_programs()
    wanted = paths.image_archives() if archives is None else list(archives)
    with state.lock():
        known = state.State.load(state.folder_of(settings.name))
        if known is None:
            _remove_remains(settings.name)
            return Up(_start(settings, wanted), ran_already=False)
        return Up(_reuse(known, settings, wanted), ran_already=True)


def down(name: str) -> bool:
    """End a cluster, running or broken, and leave nothing of it; return whether there was one."""
    with state.lock():
        existed = state.folder_of(name).exists()
        known = _readable_state(name)
        if known is not None:
            _end(known)
        _remove_remains(name)
        return existed


def find(name: str) -> Cluster | None:
    """Return the cluster of that name, which may be broken (ask its `problems`), or None."""
    known = state.State.load(state.folder_of(name))
    return None if known is None else _cluster(known)


def require(name: str) -> Cluster:
    """Return the cluster of that name; raise ClusterError when there is none."""
    cluster = find(name)
    if cluster is None:
        raise ClusterError(f"no cluster {name!r} on this machine (there are: {', '.join(state.names()) or 'none'})")
    return cluster


def _start(settings: ClusterSettings, archives: Sequence[Path]) -> Cluster:
    addresses = network.free_addresses()
    folder = state.folder_of(settings.name)
    folder.mkdir(mode=0o700, parents=True)
    begun = state.State(settings, addresses.index, boot_id(), started=False)
    begun.save(folder)
    state.make_folders(MOUNTED)
    cluster = _cluster(begun)
    try:
        cluster.start(archives)
        dataclasses.replace(begun, started=True).save(folder)
    except BaseException as error:
        message = f"cluster {settings.name!r} did not start: {error}\n{cluster.explain_failure()}"
        _end(begun)
        if isinstance(error, ClusterError):
            raise ClusterError(f"{message}\nnothing of it is left") from error
        raise
    return cluster


def _reuse(known: state.State, settings: ClusterSettings, archives: Sequence[Path]) -> Cluster:
    cluster = _cluster(known)
    problems = cluster.problems()
    if problems:
        _end(known)
        text = "\n".join(problems)
        raise ClusterError(
            f"cluster {settings.name!r} was there and broken; now nothing of it is left, so start it again:\n{text}"
        )
    differences = settings.differences(known.settings)
    if differences:
        raise ClusterError(
            f"cluster {settings.name!r} runs with other settings ({'; '.join(differences)}); end it first"
        )
    cluster.load_images(cluster.new_archives(archives))
    return cluster


def _cluster(known: state.State) -> Cluster:
    return Cluster(known.settings, Addresses(known.index))


def _readable_state(name: str) -> state.State | None:
    with contextlib.suppress(ClusterError):  # its control group and folder have all that needs an end
        return state.State.load(state.folder_of(name))
    return None


def _end(known: state.State) -> None:
    _cluster(known).end()
    state.remove_folders()


def _remove_remains(name: str) -> None:
    """End what carries the cluster's name although nothing is written down about it."""
    group = ControlGroup(name)
    group.kill()
    group.remove()
    folder = state.folder_of(name)
    if folder.exists():
        shutil.rmtree(folder)
    state.remove_folders()
