# SPDX-License-Identifier: Apache-2.0
"""How many requests a router holds, and how long one waits for a pod that admits."""

from collections.abc import Iterator
from contextlib import contextmanager

from gearshift.api.routerconfig import RouterConfig
from gearshift.router.errors import RATE_LIMIT, UNAVAILABLE, ApiError


class Admission:
    """Counts of the requests held, against their limits."""

    def __init__(self, config: RouterConfig) -> None:
        self.in_flight = 0
        self.queued = 0
        self.patience_seconds = config.queue_timeout.seconds  # so long may one request wait
        self._config = config
        self._retry_after_seconds = config.retry_after.seconds

    def enter(self) -> None:
        """Take a place; give it back with `leave`.

        Raises:
            ApiError: 429, the router is full.
        """
        if self.in_flight >= self._config.max_in_flight:
            raise self._full(f"{self.in_flight} requests are in flight", "too_many_in_flight")
        self.in_flight += 1

    def leave(self) -> None:
        """Give a place back."""
        self.in_flight -= 1

    @contextmanager
    def queue(self, *, again: bool) -> Iterator[None]:
        """A place among the requests that wait for a pod; one that had a place gets it ``again``.

        Raises:
            ApiError: 429, too many wait already.
        """
        if self.queued >= self._config.max_queue and not again:
            raise self._full(f"{self.queued} requests wait for a pod", "queue_full")
        self.queued += 1
        try:
            yield
        finally:
            self.queued -= 1

    def unavailable(self, why: str) -> ApiError:
        """503 that names the service and the reason."""
        service = f"{self._config.namespace}/{self._config.service}"
        message = f"InferenceService {service} can't serve this request now: {why}."
        return ApiError(
            503, UNAVAILABLE, message, code="no_pod_available", retry_after_seconds=self._retry_after_seconds
        )

    def _full(self, why: str, code: str) -> ApiError:
        service = f"{self._config.namespace}/{self._config.service}"
        message = f"The router of InferenceService {service} is full: {why}."
        return ApiError(429, RATE_LIMIT, message, code=code, retry_after_seconds=self._retry_after_seconds)
