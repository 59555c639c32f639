# SPDX-License-Identifier: Apache-2.0
"""What the tests of the scheduler share: a small profile, an observer that records, an integrity check."""

from collections import Counter
from dataclasses import dataclass, field, replace

from gearshift.api.vocabulary import Layout
from gearshift.perf.arrangement import Arrangement
from gearshift.perf.profiles import TINY
from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.requests import Request, RequestState

# 100 blocks of 16 tokens in each replica of DP, 4 times that and a little more in TP.
SMALL = replace(TINY, accelerator_memory_bytes=TINY.weight_bytes + 100 * 16 * TINY.kv_bytes_per_token)
LONGEST_TOKENS = 1600
KNOBS = Knobs(max_num_batched_tokens=512, max_num_seqs=16)


@dataclass
class Record:
    """Observer that keeps everything."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    tokens: Counter[str] = field(default_factory=Counter)
    finished: list[Request] = field(default_factory=list)
    preempted: int = 0
    expired: int = 0

    def on_step(self, replica: int, tokens: int) -> None:
        self.steps.append((replica, tokens))

    def on_token(self, request: Request, now: float) -> None:
        assert request.last_token_at is None or now > request.last_token_at
        self.tokens[request.id] += 1

    def on_finish(self, request: Request) -> None:
        self.finished.append(request)

    def on_preempt(self, request: Request) -> None:
        assert request.preemptions > 0
        self.preempted += 1

    def on_expire(self, replica: int) -> None:
        assert replica >= 0
        self.expired += 1


def small_core(layout: Layout = Layout.TP, knobs: Knobs = KNOBS, accelerators: int = 4) -> tuple[EngineCore, Record]:
    """A core with little KV."""
    record = Record()
    arrangement = Arrangement(layout, accelerators, accelerators, shift_threshold_tokens=64)
    return EngineCore(SMALL, arrangement, knobs, record), record


def request(name: str, prompt: int = 100, output: int = 20, at: float = 0.0, *, keep_kv: bool = False) -> Request:
    """A request that ends by its length."""
    return Request(
        id=name,
        digest=b"0" * 16,
        prompt_tokens=prompt,
        output_tokens=output,
        finish_reason="length",
        arrived_at=at,
        keep_kv=keep_kv,
    )


def run_to_the_end(core: EngineCore, now: float = 0.0, limit: int = 200_000) -> float:
    """Advance event by event until none is left; returns the time of the last one."""
    for _ in range(limit):
        due = core.next_event()
        if due is None:
            return now
        assert due >= now
        now = due
        core.advance(now)
        check_integrity(core)
    raise AssertionError("the core does not come to rest")


def check_integrity(core: EngineCore) -> None:
    """Every block has one owner or is free, and everybody holds what they have computed."""
    for replica in core.replicas:
        pool = replica.pool
        owned = [block for each in replica.running for block in each.blocks]
        owned += [block for pin in replica.pins for block in pin.blocks]
        assert len(owned) == len(set(owned))
        assert len(owned) + pool.free_blocks == pool.capacity_blocks
        assert all(0 <= block < pool.capacity_blocks for block in owned)
        assert all(each.state is RequestState.RUNNING for each in replica.running)
        assert all(len(each.blocks) * pool.block_tokens >= each.computed_tokens for each in replica.running)
        assert all(each.state is RequestState.WAITING and not each.blocks for each in replica.waiting)
        assert all(each.replica == replica.index for each in replica.requests())
        if replica.step is not None:
            assert replica.step.tokens <= core.knobs.max_num_batched_tokens
