# SPDX-License-Identifier: Apache-2.0
"""Who wrote what, from the API server's audit log: the judge of promises such as 'no write while nothing changes'."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Write:
    """One writing request that the API server has answered."""

    user: str
    user_agent: str
    verb: str
    resource: str
    """Plural, with the subresource: `pods/status`."""
    namespace: str
    name: str
    status: int


def parse(lines: Iterable[str]) -> Iterator[Write]:
    """Yield the writes of audit log lines; a last line that is not complete yet is left out."""
    for line in lines:
        if line.endswith("\n"):
            event = json.loads(line)
            if event["stage"] == "ResponseComplete":
                yield _write(event)


def _write(event: dict[str, object]) -> Write:
    reference, user, status = (_mapping(event, key) for key in ("objectRef", "user", "responseStatus"))
    resource, subresource = str(reference.get("resource", "")), str(reference.get("subresource", ""))
    return Write(
        user=str(user.get("username", "")),
        user_agent=str(event.get("userAgent", "")),
        verb=str(event["verb"]),
        resource=f"{resource}/{subresource}" if subresource else resource,
        namespace=str(reference.get("namespace", "")),
        name=str(reference.get("name", "")),
        status=int(str(status.get("code", 0))),
    )


def _mapping(event: dict[str, object], key: str) -> dict[str, object]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}


class AuditLog:
    """Reads the writes that have been logged since the last `mark` (or since the beginning)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset_bytes = 0

    def mark(self) -> None:
        """Forget what has been logged so far."""
        self.offset_bytes = self.path.stat().st_size if self.path.exists() else 0

    def writes(self, user_part: str = "") -> list[Write]:
        """Return the writes since the mark whose user name contains `user_part`."""
        if not self.path.exists():
            return []
        with self.path.open() as log:
            log.seek(self.offset_bytes)
            return [write for write in parse(log) if user_part in write.user]
