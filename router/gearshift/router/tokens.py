# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens from files that the kubelet replaces as they rotate."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

REREAD_SECONDS: Final = 30.0  # projected tokens are renewed minutes before they expire


class TokenFile:
    """The present token of a file, read again as it rotates, and the one before it, which is valid for a while yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = ""  # as the file had it last
        self._used = ""
        self._other = ""  # the one before, or the newer one while that is in doubt
        self._read_at = float("-inf")

    def header(self) -> dict[str, str]:
        """``Authorization`` header.

        Raises:
            OSError: the file can't be read.
        """
        now = time.monotonic()
        if now - self._read_at >= REREAD_SECONDS:
            read = self.path.read_text().strip()
            if read != self._read:
                self._read, self._used, self._other = read, read, self._used
            self._read_at = now
        return {"Authorization": f"Bearer {self._used}"}

    def expire(self) -> None:
        """A token was refused: use what the file has now."""
        self._read = ""
        self._read_at = float("-inf")

    def doubt(self, header: Mapping[str, str]) -> None:
        """A peer can't have this token checked now, but may know the other one."""
        if self._other and header.get("Authorization") == f"Bearer {self._used}":
            self._used, self._other = self._other, self._used

    def answered(self, status: int, header: Mapping[str, str]) -> None:
        """Learn from the status of the answer to a request with ``header``."""
        if status == 401:
            self.expire()
        elif status == 503:
            self.doubt(header)
