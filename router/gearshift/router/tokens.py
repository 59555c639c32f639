# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens from files that the kubelet replaces as they rotate."""

import time
from pathlib import Path
from typing import Final

REREAD_SECONDS: Final = 30.0  # projected tokens are renewed minutes before they expire


class TokenFile:
    """The present token of a file, read again as it rotates."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._token = ""
        self._read_at = float("-inf")

    def header(self) -> dict[str, str]:
        """``Authorization`` header.

        Raises:
            OSError: the file can't be read.
        """
        now = time.monotonic()
        if now - self._read_at >= REREAD_SECONDS:
            self._token = self.path.read_text().strip()
            self._read_at = now
        return {"Authorization": f"Bearer {self._token}"}

    def expire(self) -> None:
        """Read the file at the next use: the token was refused."""
        self._read_at = float("-inf")
