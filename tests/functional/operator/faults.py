# SPDX-License-Identifier: Apache-2.0
"""What can be wrong between an operator and the API server, and which calls it concerns."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an operator."""

    method: str
    path: str
    named: bool  # about one object, not about all of a kind
    watch: bool
    dry: bool = False  # only asks whether it would be taken

    @property
    def election(self) -> bool:
        """It is about the lease."""
        return "/leases" in self.path

    @property
    def lists(self) -> bool:
        """It asks for all objects of a kind."""
        return self.method == "GET" and not (self.watch or self.named)


def call_of(method: str, path: str, query: Mapping[str, str]) -> Call:
    """The call that a request stands for."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]  # without group and version
    within = rest[2:] if rest[:1] == ["namespaces"] and len(rest) > 2 else rest
    return Call(method, path, len(within) > 1, query.get("watch") == "true", "dryRun" in query)


def every(_: Call) -> bool:
    """Each call."""
    return True


def writing(call: Call) -> bool:
    """Calls that change something; the lease is not meant, nor a question in the form of a POST."""
    return call.method in WRITES and not (call.election or call.dry or "selfsubjectreviews" in call.path)


def looking(call: Call) -> bool:
    """Lists and watches."""
    return call.lists or call.watch


@dataclass
class Fault:
    """What is wrong, for a share of the calls that it concerns."""

    concerns: Callable[[Call], bool] = every
    share: float = 1.0
    status: int | None = None  # refused with it
    delay_seconds: float = 0.0
    loses_answer: bool = False  # the API server does what it is asked, and the answer gets lost
    met: int = 0  # calls that have met it
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    def hits(self, call: Call) -> bool:
        """Whether a call meets it."""
        hit = self.concerns(call) and self.dice.random() < self.share
        self.met += hit
        return hit
