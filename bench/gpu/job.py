# SPDX-License-Identifier: Apache-2.0
"""What one engine is to do: the contract between `bench.gpu.shift` and its child processes `bench.gpu.engine`."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.gpu.devices import Device
from gearshift.sim.load.arrivals import Phase

Layout = Literal["TP", "DP", "Shift"]

BURSTS: Final = 4
CAPACITY_STEP: Final = 10.0  # tokens/s to which a measured capacity is rounded


class _Part(BaseModel):
    """Settings of one part of the measurement; two layouts are compared only where these are equal."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Latency(_Part):
    """One request at a time."""

    inputs: tuple[int, ...] = (4096,)
    output_tokens: int = Field(default=64, ge=2)
    repeats: int = Field(default=3, ge=1)


class Peak(_Part):
    """So many requests at once, twice as many each round, until a round gains little."""

    input_tokens: int = 4096
    output_tokens: int = 250
    first_requests: int = Field(default=96, ge=1)
    least_gain: float = 0.03  # share; a round that gains less is the last
    seconds: float = 150.0  # no round begins that would end later


class Burst(_Part):
    """A steady low rate with `BURSTS` bursts, both as shares of a capacity."""

    input_tokens: int = 4096
    output_tokens: int = 250
    capacity_tokens_per_second: float | None = None  # None: the peak that the same engine has just reached
    calm_share: float = 0.2
    burst_share: float = 1.25
    calm_seconds: float = 10.0
    burst_seconds: float = 10.0

    def resolved(self, measured: float | None) -> "Burst":
        """With a capacity.

        Raises:
            ValueError: none was given and none has been measured.
        """
        if self.capacity_tokens_per_second is not None:
            return self
        if measured is None:
            raise ValueError("needs the peak of TP in --out, or --burst-capacity")
        rounded = round(measured / CAPACITY_STEP) * CAPACITY_STEP
        return self.model_copy(update={"capacity_tokens_per_second": rounded})

    def phases(self) -> list[Phase]:
        """The trace: calm, burst, calm, and so on, ending calm."""
        calm = self._phase(self.calm_seconds, self.calm_share)
        return [each for _ in range(BURSTS) for each in (calm, self._phase(self.burst_seconds, self.burst_share))] + [
            calm
        ]

    def _phase(self, seconds: float, share: float) -> Phase:
        assert self.capacity_tokens_per_second is not None
        rate = share * self.capacity_tokens_per_second / (self.input_tokens + self.output_tokens)
        lengths = {"prompt_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return Phase(seconds=seconds, requests_per_second=rate, **lengths)


class Job(BaseModel):
    """One engine and the parts that it measures, in their order: start, latency, peak, burst."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shape: str
    layout: Layout
    ranks: int = Field(ge=1)
    device: Device = "cuda"
    models: str  # folder for the configurations of shapes
    context_tokens: int  # longest request, in and out
    latency: Latency | None = None
    peak: Peak | None = None
    burst: Burst | None = None
    shift: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    profile: str | None = None  # folder for a kernel trace of one prefill
