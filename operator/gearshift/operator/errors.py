# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong in the operator, as one tree.

OperatorError
|- SettingsError          a flag or variable has a bad value
|- NotLeader              this process may not write now
|- ChildRefused           a child can't be made as the spec asks; a human must change something
|- KubeError              the API server refused or could not be asked
|  |- NotFound, AlreadyExists, Conflict
|  |- Invalid             400, 422: the object is wrong
|  |- Forbidden           401, 403: rights, quota or admission
|  `- Unavailable         no answer, 429, 5xx: worth another try
`- SidecarError           a sidecar refused or could not be asked
"""


class OperatorError(Exception):
    """Base of all."""


class SettingsError(OperatorError):
    """A flag or environment variable has a bad value."""


class NotLeader(OperatorError):
    """This process does not hold the lease, so it writes nothing."""


class ChildRefused(OperatorError):
    """A child can't be made as the spec asks."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class KubeError(OperatorError):
    """The API server refused, or could not be asked."""

    def __init__(self, what: str, message: str, status: int = 0) -> None:
        super().__init__(f"{what}: {message}")
        self.message = message
        self.status = status


class NotFound(KubeError):
    """No such object."""


class AlreadyExists(KubeError):
    """An object of that name exists."""


class Conflict(KubeError):
    """The object is not the one, or not the version, that the write was meant for."""


class Invalid(KubeError):
    """The API server says that the object is wrong."""


class Forbidden(KubeError):
    """Rights, quota or admission stand in the way."""


class Unavailable(KubeError):
    """No answer, or one that says: later."""


class SidecarError(OperatorError):
    """A sidecar refused, or could not be asked. ``status`` 0 means that there was no answer."""

    def __init__(self, message: str, status: int = 0, reason: str = "", fencing_token: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.fencing_token = fencing_token
