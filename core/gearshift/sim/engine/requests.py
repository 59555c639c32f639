# SPDX-License-Identifier: Apache-2.0
"""One request inside the simulated scheduler: what it asks for and how far it has come."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

FinishReason = Literal["stop", "length", "abort"]


class RequestState(StrEnum):
    """Where a request is."""

    WAITING = "Waiting"  # has no KV
    RUNNING = "Running"  # has KV and takes part in steps
    FINISHED = "Finished"
    ABORTED = "Aborted"


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """A sequence to compute. Times are seconds of the model's clock."""

    id: str
    digest: bytes  # of the model and the prompt whose KV it has: all that its output depends on
    prompt_tokens: int
    output_tokens: int  # it finishes after as many
    finish_reason: FinishReason
    arrived_at: float
    max_tokens: int = 0  # as the client asked
    keep_kv: bool = False  # another engine will read the KV after the end
    remote_tokens: int = 0  # prompt tokens whose KV has come from another engine

    state: RequestState = RequestState.WAITING
    blocks: list[int] = field(default_factory=list)
    computed_tokens: int = 0  # tokens whose KV is in `blocks`
    generated_tokens: int = 0
    preemptions: int = 0
    replica: int = 0
    scheduled_at: float | None = None  # first step that it took part in
    first_token_at: float | None = None
    last_token_at: float | None = None
    finished_at: float | None = None

    @property
    def sequence_tokens(self) -> int:
        """Prompt and generated tokens."""
        return self.prompt_tokens + self.generated_tokens

    @property
    def uncomputed_tokens(self) -> int:
        """Tokens to compute before the next one is generated; 1 while it decodes."""
        return self.sequence_tokens - self.computed_tokens

    @property
    def done(self) -> bool:
        """No more tokens will come."""
        return self.state in {RequestState.FINISHED, RequestState.ABORTED}

    def preempt(self) -> list[int]:
        """Forget all KV and go back to waiting; returns the blocks to free."""
        blocks, self.blocks = self.blocks, []
        self.computed_tokens = 0
        self.remote_tokens = 0
        self.preemptions += 1
        self.state = RequestState.WAITING
        return blocks
