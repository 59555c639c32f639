# SPDX-License-Identifier: Apache-2.0
"""What the shift engine adds to a vLLM worker, as a mixin over the worker of either device."""

import functools
import gc
import time
from collections.abc import Callable
from typing import Any

import torch
from vllm.logger import init_logger

from gearshift.engine.shift import calibration, forward
from gearshift.engine.shift.clock import StepClock, step_clock
from gearshift.engine.shift.exchange import HeadPlan
from gearshift.engine.shift.loading import both_trees
from gearshift.engine.shift.measuring import measure
from gearshift.engine.shift.ranks import plan_ranks
from gearshift.engine.shift.runtime import Groups, Runtime
from gearshift.engine.shift.settings import ShiftSettings
from gearshift.engine.shift.steps import Mode
from gearshift.engine.shift.support import require_supported
from gearshift.engine.shift.tree import SequenceTree, model_bytes

logger = init_logger("vllm.gearshift.shift")


class ShiftWorkerMixin:
    """Load both trees, profile both, warm both up, choose one a step."""

    shift_runtime: Runtime
    shift_tree: SequenceTree
    shift_phases: dict[str, float]  # seconds by start-up phase
    shift_curve: list[calibration.Sample]
    shift_clock: StepClock
    shift_weights_bytes: dict[str, int]

    def load_model(self: Any, **named: Any) -> None:
        """vLLM's load, with the SP tree fed from the same pass."""
        config = self.vllm_config
        require_supported(config)
        settings = ShiftSettings.read(config.additional_config)
        self.shift_settings, self.shift_phases, self.shift_curve = settings, {}, []
        self.shift_clock = step_clock(config.device_config.device_type)
        self.shift_runtime = _runtime(config, settings)
        self.shift_tree = SequenceTree(config, settings, self.shift_runtime)
        with _phase(self, "load"), both_trees(config, self.shift_tree):
            super().load_model(**named)  # type: ignore[misc]
        self._shift_install()

    def _shift_install(self: Any) -> None:
        runner = self.model_runner
        tree, own = self.shift_tree.model, self.shift_tree.bytes()
        model = runner.get_model()
        self.shift_tree.lend(model)
        embed = model.embed_input_ids if self.shift_settings.share_vocabulary else None
        forward.install(model, tree, self.shift_runtime, forward.Slicing(_slice_multiple(tree), embed))
        before = getattr(runner, "model_memory_usage", 0) - self.shift_tree.held_bytes
        self.shift_weights_bytes = {Mode.TENSOR.value: model_bytes(model), Mode.SEQUENCE.value: own}
        runner.model_memory_usage = before + own  # the memory profile budgets for both trees
        gc.collect()  # layers that were replaced go now, not in the middle of a compilation
        runner.profile_run = functools.partial(_profile_both, runner.profile_run, self)
        logger.info(
            "shift: %s, SP tree %.2f GiB, TP tree %.2f GiB", self.shift_runtime.plan, own / 2**30, before / 2**30
        )

    def compile_or_warm_up_model(self: Any) -> Any:
        """vLLM's warm-up and graph capture; then the SP tree's, and the threshold."""
        result = super().compile_or_warm_up_model()  # type: ignore[misc]
        with _phase(self, "warm_up_sp"), self.shift_runtime.force(Mode.SEQUENCE):
            self._shift_dummy_step(self._shift_largest_step())
        if self.shift_settings.threshold_tokens == "auto":
            with _phase(self, "calibrate"):
                self._shift_calibrate()
        logger.info("shift: threshold %d tokens, phases %s", self.shift_runtime.threshold_tokens, self.shift_phases)
        return result

    def _shift_largest_step(self: Any) -> int:
        return int(self.vllm_config.scheduler_config.max_num_batched_tokens)

    def _shift_dummy_step(self: Any, tokens: int) -> None:
        with torch.inference_mode():
            self.model_runner._dummy_run(tokens)  # noqa: SLF001 - the step that vLLM's own warm-up runs

    def _shift_calibrate(self: Any) -> None:
        runtime = self.shift_runtime
        ceiling = min(self.shift_settings.max_threshold_tokens, self._shift_largest_step())
        points = calibration.sizes(runtime.floor_tokens, ceiling)
        self.shift_curve = measure(runtime, self._shift_dummy_step, points)
        floor = min(runtime.floor_tokens, ceiling)
        runtime.set_threshold(max(runtime.floor_tokens, calibration.crossing(self.shift_curve, floor, ceiling)))

    def execute_model(self: Any, scheduler_output: Any) -> Any:
        """One engine step, in the mode that its number of scheduled tokens asks for."""
        runtime, tokens = self.shift_runtime, scheduler_output.total_num_scheduled_tokens
        with runtime.step(tokens):
            if not tokens:
                return super().execute_model(scheduler_output)  # type: ignore[misc]
            with self.shift_clock.step(runtime.mode.value):
                return super().execute_model(scheduler_output)  # type: ignore[misc]

    def gearshift_shift_state(self) -> dict[str, Any]:
        """What this rank says of itself: for status, metrics and proofs."""
        runtime = self.shift_runtime
        return {
            "thresholdTokens": runtime.threshold_tokens,
            "floorTokens": runtime.floor_tokens,
            "sequenceParallelSize": runtime.plan.sequence,
            "steps": {str(mode): count for mode, count in runtime.counters.steps.items()},
            "tokens": {str(mode): count for mode, count in runtime.counters.tokens.items()},
            "stepSeconds": dict(self.shift_clock.seconds),
            "exchangedBytes": runtime.counters.exchanged_bytes,
            "weightsBytes": self.shift_weights_bytes,
            "phases": self.shift_phases,
            "curve": [[s.tokens, s.tensor_seconds, s.sequence_seconds] for s in self.shift_curve],
        }

    def gearshift_shift_threshold(self, tokens: int) -> int:
        """Set the threshold on this rank; returns the one in force.

        Raises:
            ValueError: below the largest captured graph.
        """
        self.shift_runtime.set_threshold(tokens)
        return self.shift_runtime.threshold_tokens


def _runtime(config: Any, settings: ShiftSettings) -> Runtime:
    """Groups and first threshold; with ``auto`` that of the captured graphs, until both trees have been measured."""
    model, world = config.model_config, config.parallel_config.tensor_parallel_size
    heads, kv_heads = model.hf_text_config.num_attention_heads, model.get_total_num_kv_heads()
    plan = plan_ranks(world, settings.sequence_parallel_size, heads, kv_heads)
    floor = config.compilation_config.max_cudagraph_capture_size or 0
    runtime = Runtime(plan, Groups.create(plan), threshold_tokens=floor, floor_tokens=floor)
    if settings.threshold_tokens != "auto":
        runtime.set_threshold(settings.threshold_tokens)
    return runtime


class _phase:  # noqa: N801 - a context manager used as a word
    """Time a start-up phase of a worker."""

    def __init__(self, worker: Any, name: str) -> None:
        self._phases: dict[str, float] = worker.shift_phases
        self._name = name

    def __enter__(self) -> None:
        self._begin = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._phases[self._name] = round(time.monotonic() - self._begin, 3)


def _slice_multiple(tree: Any) -> int:
    """Rows of a slice must be a multiple of the ranks that share a KV head where heads are gathered."""
    plans = [
        m.heads for m in tree.modules() if isinstance(getattr(m, "heads", None), HeadPlan) and m.method == "gather"
    ]
    return max((heads.share for heads in plans), default=1)


def _profile_both(profile_run: Callable[..., None], worker: Any, *given: Any, **named: Any) -> None:
    """Profile the TP tree, then the SP tree: the peak that vLLM reads is that of the larger one."""
    profile_run(*given, **named)
    with _phase(worker, "profile_sp"), worker.shift_runtime.force(Mode.SEQUENCE):
        profile_run(*given, **named)
