# SPDX-License-Identifier: Apache-2.0
"""Reasons, CamelCase, that machines compare: one place, so that status, events, metrics and errors say the same word."""

from typing import Final

# Refusals of the sidecar's control API (`gearshift.api.wire.ControlError.reason`).
UNAUTHORIZED: Final = "Unauthorized"  # 401: no bearer token, or not a valid one
FORBIDDEN: Final = "Forbidden"  # 403: a valid token of an account that may not do this
AUTH_UNAVAILABLE: Final = "AuthUnavailable"  # 503: the API server can't be asked and this token was never verified
BAD_REQUEST: Final = "BadRequest"  # 400: the body is not what the route takes
NOT_FOUND: Final = "NotFound"  # 404
STALE_FENCING_TOKEN: Final = "StaleFencingToken"  # 409: a newer leader has spoken
STALE_EPOCH: Final = "StaleEpoch"  # 409: the pod has changed since the order was decided
TRANSITION_IN_FLIGHT: Final = "TransitionInFlight"  # 409: one at a time
NOT_SERVING: Final = "NotServing"  # 409: only a pod that serves can be changed
ID_REUSED: Final = "IdReused"  # 409: the id belongs to another order
NOT_CAPABLE: Final = "NotCapable"  # 422: this pod can't do that
NO_CHANGE: Final = "NoChange"  # 422: it is so already

# How a transition ended (`gearshift.api.wire.TransitionStatus.reason`).
VERIFIED: Final = "Verified"
DRAIN_TIMEOUT: Final = "DrainTimeout"
SWITCH_FAILED: Final = "SwitchFailed"
VERIFICATION_FAILED: Final = "VerificationFailed"
ROLLBACK_FAILED: Final = "RollbackFailed"
ENGINE_LOST: Final = "EngineLost"
POD_TERMINATING: Final = "PodTerminating"
SIDECAR_RESTARTED: Final = "SidecarRestarted"
START_REFUSED: Final = "StartRefused"
