# SPDX-License-Identifier: Apache-2.0
"""Accelerators by their data sheets: the limits that the terms of the performance model are counted in."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class UnknownGpuError(LookupError):
    """No data sheet of that accelerator. The message lists the known ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator; peak rates are dense ones."""

    name: str
    memory_bytes: float
    memory_bytes_per_second: float
    bf16_flop_per_second: float
    fp8_flop_per_second: float
    link_bytes_per_second: float  # to all others of the host, one direction

    def flop_per_second(self, weight_bytes: float) -> float:
        """Peak rate for weights of that many bytes a parameter; those below a byte compute in 16 bits."""
        return self.fp8_flop_per_second if weight_bytes == 1 else self.bf16_flop_per_second


_H100: Final = Gpu(
    name="h100_sxm",
    memory_bytes=80e9,
    memory_bytes_per_second=3.35e12,
    bf16_flop_per_second=990e12,
    fp8_flop_per_second=1979e12,
    link_bytes_per_second=450e9,
)
_H200: Final = Gpu(
    name="h200_sxm",
    memory_bytes=141e9,
    memory_bytes_per_second=4.8e12,
    bf16_flop_per_second=990e12,
    fp8_flop_per_second=1979e12,
    link_bytes_per_second=450e9,
)
_GPUS: Final = MappingProxyType({gpu.name: gpu for gpu in (_H100, _H200)})


def gpu_names() -> list[str]:
    """Names that `find_gpu` knows, sorted."""
    return sorted(_GPUS)


def find_gpu(name: str) -> Gpu:
    """The accelerator called ``name``.

    Raises:
        UnknownGpuError: there is none.
    """
    try:
        return _GPUS[name]
    except KeyError:
        raise UnknownGpuError(f"gpu {name!r} is unknown; known: {', '.join(gpu_names())}") from None
