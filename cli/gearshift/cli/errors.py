# SPDX-License-Identifier: Apache-2.0
"""What a user gets wrong, told in one line."""


class UsageError(Exception):
    """Input that can't be used. The message names the object, the field and the value."""


class RefusedError(Exception):
    """The cluster, or the state of the object, says no. The message names the object and what stands against it."""


class NotFoundError(RefusedError):
    """There is no such object."""


class UnreachableError(RefusedError):
    """The API server gave no answer."""


class ConflictError(RefusedError):
    """Field managers other than this command line hold the field; ``managers`` are their names."""

    def __init__(self, message: str, managers: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.managers = managers
