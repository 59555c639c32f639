# SPDX-License-Identifier: Apache-2.0
"""What looks at services cost this process, so that a large cluster makes quiet looks rarer and not all looks late.

Changes of objects are not waited for here: they wake a service at once, however many services there are.
"""

import time
from collections.abc import Callable
from typing import Final

_SHARE: Final = 0.3  # of one processor, for looks at services of which nothing is heard
_SAMPLE_LOOKS: Final = 100
_SETTLED_SAMPLES: Final = 5
_FIRST_ROUND_SECONDS: Final = 30.0  # at most, while looks pay for what a start costs


class Cost:
    """Processor time of one look, measured over the whole process: what is done between looks is paid by them."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._since = clock()
        self._looks = 0
        self._samples = 0
        self.look_seconds = 0.0

    def looked(self) -> None:
        """Count a look."""
        self._looks += 1
        if self._looks >= _SAMPLE_LOOKS:
            now = self._clock()
            measured = (now - self._since) / self._looks
            self.look_seconds = (self.look_seconds + measured) / 2 if self.look_seconds else measured
            self._since, self._looks = now, 0
            self._samples += 1

    def round_seconds(self, services: int) -> float:
        """How long a round of looks at all services must take at least to keep to the share; 0 before it is known."""
        needed = services * self.look_seconds / _SHARE
        return needed if self._samples >= _SETTLED_SAMPLES else min(needed, _FIRST_ROUND_SECONDS)
