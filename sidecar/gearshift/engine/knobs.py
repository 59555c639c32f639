# SPDX-License-Identifier: Apache-2.0
"""Scheduler settings of a role against those that the engine was started with."""

from dataclasses import dataclass

from gearshift.api.engine import RoleKnobs


class KnobRefusedError(Exception):
    """A setting that this engine can't take; ``field`` is its wire name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"knobs.{field}: {message}")
        self.field = field


@dataclass(frozen=True)
class Knobs:
    """A full set of settings."""

    max_num_batched_tokens: int
    max_num_seqs: int
    long_prefill_token_threshold: int

    def wire(self) -> RoleKnobs:
        """The wire form."""
        return RoleKnobs(
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_num_seqs=self.max_num_seqs,
            long_prefill_token_threshold=self.long_prefill_token_threshold,
        )


def settle(wanted: RoleKnobs, start: Knobs) -> Knobs:
    """Fill in the start values for what ``wanted`` leaves open.

    Raises:
        KnobRefusedError: more than the engine's buffers were made for.
    """
    tokens = _at_most("maxNumBatchedTokens", wanted.max_num_batched_tokens, start.max_num_batched_tokens)
    sequences = _at_most("maxNumSeqs", wanted.max_num_seqs, start.max_num_seqs)
    threshold = wanted.long_prefill_token_threshold
    return Knobs(
        max_num_batched_tokens=tokens,
        max_num_seqs=sequences,
        long_prefill_token_threshold=start.long_prefill_token_threshold if threshold is None else threshold,
    )


def _at_most(field: str, wanted: int | None, start: int) -> int:
    if wanted is None:
        return start
    if wanted > start:
        raise KnobRefusedError(field, f"{wanted} is above {start}, which the engine was started with")
    return wanted
