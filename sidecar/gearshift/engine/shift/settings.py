# SPDX-License-Identifier: Apache-2.0
"""Settings of the shift engine: ``additional_config["gearshift"]`` of vLLM, checked once at start."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError

from gearshift.api.base import FrozenModel

CONFIG_KEY = "gearshift"


class ShiftSettingsError(ValueError):
    """The settings can't be honoured; the message names the field and the bad value."""


class ShiftSettings(FrozenModel):
    """What a user may choose."""

    sequence_parallel_size: int | None = Field(default=None, ge=2, le=64)
    """Ranks of one sequence-parallel group; all ranks when None."""
    threshold_tokens: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    """Steps with more scheduled tokens run sequence parallel; ``auto`` measures both trees at warm-up."""
    max_threshold_tokens: int = Field(default=4096, ge=1)
    """Largest threshold that ``auto`` takes."""
    key_value_exchange: Literal["auto", "replicate", "gather"] = "auto"
    """How fewer KV heads than ranks travel: copied by the sender, or gathered within the group that shares a head."""
    transport: Literal["auto", "collective", "peer"] = "auto"
    """All-to-all by the collective library or by direct writes to peers; ``auto``: peers on CUDA."""
    share_vocabulary: bool = False
    """The SP tree uses the TP tree's embedding: saves its memory, costs an all-reduce of the embedded step."""

    @classmethod
    def read(cls, additional_config: Mapping[str, Any]) -> Self:
        """Settings out of vLLM's ``additional_config``.

        Raises:
            ShiftSettingsError: an unknown field or a bad value.
        """
        raw = additional_config.get(CONFIG_KEY, {})
        if not isinstance(raw, Mapping):
            raise ShiftSettingsError(f"additional_config.{CONFIG_KEY}: {raw!r} is not an object")
        try:
            return cls.model_validate(dict(raw))
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in (CONFIG_KEY, *first["loc"]))
            raise ShiftSettingsError(f"additional_config.{path}: {first['msg']} (got {first['input']!r})") from error
