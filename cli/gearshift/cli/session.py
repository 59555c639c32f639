# SPDX-License-Identifier: Apache-2.0
"""What every command that speaks to a cluster begins with and ends with."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from gearshift.api import names
from gearshift.cli.kube import Kube
from gearshift.cli.output import document
from gearshift.cli.service import Json, Service


@dataclass(frozen=True, slots=True)
class Session:
    """A cluster, a namespace in it and the way to print."""

    kube: Kube
    namespace: str
    output: str | None
    dry_run: bool

    def service(self, name: str) -> Service:
        """One service.

        Raises:
            NotFoundError: there is none of that name.
        """
        return Service.read(self.kube.get(self.namespace, name))

    def say(self, line: str) -> None:
        """Tell people; where machines read the result, beside it."""
        stream = sys.stderr if self.output is not None else sys.stdout
        stream.write(line + "\n")
        stream.flush()

    def show(self, text: str, facts: object) -> None:
        """Print a result: ``text`` for people or ``facts`` for machines."""
        sys.stdout.write(text if self.output is None else document(facts, self.output))

    def show_object(self, body: Json) -> None:
        """Print the object that a write has returned, where machines read it; as kubectl, without managed fields."""
        if self.output is not None:
            metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
            sys.stdout.write(document({**body, "metadata": metadata}, self.output))

    def changed(self, body: Json, words: str) -> None:
        """Say what a write has done to the object that it returned."""
        suffix = " (server dry run)" if self.dry_run else ""
        name = body["metadata"]["name"]
        self.say(f"{names.KIND.lower()}.{names.GROUP}/{name} {words}{suffix}")


@contextmanager
def session(arguments: argparse.Namespace) -> Iterator[Session]:
    """Connect as the options say.

    Raises:
        UsageError: the kubeconfig can't be used.
    """
    kubeconfig, context = getattr(arguments, "kubeconfig", None), getattr(arguments, "context", None)
    with Kube.connect(kubeconfig, context) as kube:
        namespace = getattr(arguments, "namespace", None) or kube.namespace
        dry_run = getattr(arguments, "dry_run", "none") == "server"
        yield Session(kube, namespace, arguments.output, dry_run)


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)
