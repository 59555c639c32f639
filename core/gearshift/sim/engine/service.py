# SPDX-License-Identifier: Apache-2.0
"""State of one simulated engine process: the runner and what the routes know of it."""

import asyncio
import time
from collections.abc import Callable
from secrets import token_hex

from gearshift.api.engine import EngineState, RoleKnobs
from gearshift.api.vocabulary import Layout, Role
from gearshift.sim.engine.core import EngineCore
from gearshift.sim.engine.faults import Fault, Faults
from gearshift.sim.engine.metrics import EngineMetrics
from gearshift.sim.engine.options import Options
from gearshift.sim.engine.protocol import Job, Limits
from gearshift.sim.engine.requests import Request
from gearshift.sim.engine.runner import Runner

KV_LEASE_SECONDS = 30.0


class Service:
    """One engine: what it serves, in which layout and role, and what is wrong with it."""

    def __init__(self, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self.limits = Limits(options.model, options.max_model_len_tokens)
        self.engine_id = token_hex(16)
        self.faults = Faults(options.faults)
        self.role: Role = options.role
        self.epoch = 0
        self.ranks = options.arrangement.accelerators
        self.switching = asyncio.Lock()  # one control operation at a time
        self.transferring = 0  # requests whose KV is on its way from another engine
        self.metrics = EngineMetrics(options.model, options.speed)
        lease_seconds = KV_LEASE_SECONDS * options.speed
        core = EngineCore(options.profile, options.arrangement, options.knobs, self.metrics, lease_seconds)
        self.runner = Runner(core, options.speed, clock)
        self.metrics.watch(core, lambda: self.transferring)
        self._sound_state = self._place()

    @property
    def core(self) -> EngineCore:
        """The scheduler."""
        return self.runner.core

    def state(self) -> EngineState:
        """What the scheduler and the ranks say now."""
        core, knobs = self.core, self.core.knobs
        threshold = core.arrangement.shift_threshold_tokens
        return EngineState(
            layout=core.arrangement.layout,
            layouts=list(self.options.layouts),
            role=self.role,
            epoch=self.epoch,
            paused=core.paused,
            ranks=self.ranks,
            world_size=self.options.arrangement.accelerators,
            knobs=RoleKnobs(
                max_num_batched_tokens=knobs.max_num_batched_tokens,
                max_num_seqs=knobs.max_num_seqs,
                long_prefill_token_threshold=knobs.long_prefill_token_threshold,
            ),
            running=core.running,
            waiting=core.waiting + self.transferring,
            kv_usage=core.kv_usage,
            shift_threshold_tokens=threshold if core.arrangement.layout is Layout.SHIFT else None,
            shift_floor_tokens=0,
            details=self._details(),
        )

    def set_faults(self, faults: frozenset[Fault]) -> None:
        """Put ``faults`` in force; the present layout and role are the sound ones."""
        self._sound_state = self._place()
        self.faults.replace(faults)

    @property
    def answers_completions(self) -> bool:
        """False while a fault makes completions fail."""
        if Fault.FAIL_PROBE in self.faults:
            return False
        return Fault.FAIL_PROBE_AFTER_SWITCH not in self.faults or self._place() == self._sound_state

    def request_of(self, job: Job, request_id: str, arrived_at: float) -> Request:
        """The scheduler's form of ``job``."""
        params = job.kv_transfer_params or {}
        return Request(
            id=request_id,
            digest=job.digest,
            prompt_tokens=len(job.prompt),
            output_tokens=job.output_tokens,
            finish_reason=job.finish_reason,
            arrived_at=arrived_at,
            max_tokens=job.max_tokens,
            keep_kv=bool(params.get("do_remote_decode")),
        )

    def _place(self) -> tuple[Layout, Role]:
        return self.core.arrangement.layout, self.role

    def _details(self) -> dict[str, str]:
        arrangement = self.core.arrangement
        return {
            "engine": "simulated",
            "engineId": self.engine_id,
            "kvHeld": str(sum(len(replica.pins) for replica in self.core.replicas)),
            "profile": self.options.profile.name,
            "speed": f"{self.options.speed:g}",
            "replicas": str(arrangement.replicas),
            "sequenceParallelSize": str(arrangement.sequence_parallel_size),
            "shiftThresholdTokens": str(arrangement.shift_threshold_tokens),
            "kvTokens": str(sum(each.pool.capacity_blocks * each.pool.block_tokens for each in self.core.replicas)),
        }
