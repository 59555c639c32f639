# SPDX-License-Identifier: Apache-2.0
"""How one engine process is started: command line and environment of each kind of engine, pure.

A new family of engines is one more function in `LAUNCHERS`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gearshift.api.ownedargs import owned_args
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Device, Layout
from gearshift.sidecar.arguments import find_options, omp_threads_bind, split_whole, take_option

ENGINE_PYTHON: Final = "GEARSHIFT_ENGINE_PYTHON"
PLUGIN: Final = "gearshift"
NIXL_PORT_STRIDE: Final = 16
DEFAULT_GPU_MEMORY_UTILIZATION: Final = 0.9
DEFAULT_CPU_KV_GIB: Final = 1
QUIET: Final = "--disable-uvicorn-access-log"  # the sidecar asks for the load ten times a second
DEFAULT_CAPTURE_TOKENS: Final = 512
"""Largest graph that vLLM captures by itself."""
_MEMORY_OPTION: Final = "--gpu-memory-utilization"
_ADDITIONAL_OPTION: Final = "--additional-config"
_CAPTURE_OPTION: Final = "--max-cudagraph-capture-size"


class LaunchError(ValueError):
    """The configuration asks for an engine that cannot be started; the message names the field and the value."""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launch depends on."""

    config: PodConfig
    pod_ip: str
    port: int
    index: int  # of the resident engine in its pod
    residents: int  # engines that share the pod's memory
    nixl_port: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One process."""

    argv: tuple[str, ...]
    env: dict[str, str]


def launch_simulated(context: LaunchContext) -> Launch:
    """The Simulated engine: one process that is capable of all layouts.

    Raises:
        LaunchError: engineArgs sets what belongs to Gearshift.
    """
    config = context.config
    _refuse_owned(config.engine_args)
    options = {
        "--host": "0.0.0.0",  # noqa: S104 - clients reach it at the pod's address
        "--port": context.port,
        "--model": config.model,
        "--accelerators": config.accelerators,
        "--layout": config.initial_layout.value,
        "--role": config.initial_role.value,
        "--sequence-parallel-size": config.sequence_parallel_size,
    }
    argv = [_python(config), "-m", "gearshift.sim.engine", *_flatten(options), *config.engine_args]
    return Launch(tuple(argv), dict(config.engine_env))


def launch_tensor_parallel(context: LaunchContext) -> Launch:
    """vLLM with every layer split over all accelerators of the pod."""
    return _launch_vllm(context, {"--tensor-parallel-size": context.config.accelerators})


def launch_data_parallel(context: LaunchContext) -> Launch:
    """vLLM with one independent replica an accelerator behind one server."""
    return _launch_vllm(context, {"--data-parallel-size": context.config.accelerators})


def launch_shift(context: LaunchContext) -> Launch:
    """vLLM over all accelerators with a sequence-parallel tree beside its own: layouts Shift, SP and TP.

    Raises:
        LaunchError: engineArgs sets what belongs to the InferenceService.
    """
    config = context.config
    additional, rest = _additional_config(config)
    device = "cuda" if config.device is Device.CUDA else "cpu"
    parallelism = {
        "--tensor-parallel-size": config.accelerators,
        "--worker-cls": f"gearshift.engine.shift.{device}.ShiftWorker",
        "--additional-config": json.dumps(additional, sort_keys=True),
        **_captured_graphs(config, rest),
    }
    return _launch_vllm(replace(context, config=config.model_copy(update={"engine_args": rest})), parallelism)


def _additional_config(config: PodConfig) -> tuple[dict[str, Any], list[str]]:
    """vLLM's additional configuration with the settings of the shift engine, and the other engine arguments."""
    try:
        given, rest = take_option(config.engine_args, _ADDITIONAL_OPTION)
        additional = json.loads(given or "{}")
    except ValueError as error:
        raise LaunchError(f"engineArgs {_ADDITIONAL_OPTION}: {error}") from error
    own = additional.get(PLUGIN, {}) if isinstance(additional, dict) else None
    if not isinstance(own, dict):
        raise LaunchError(f"engineArgs {_ADDITIONAL_OPTION}: {given!r} is not a JSON object, or its {PLUGIN!r} is none")
    settings = {"sequenceParallelSize": config.sequence_parallel_size, "thresholdTokens": start_threshold(config)}
    taken = [name for name in settings if name in own]
    if taken:
        message = f"{PLUGIN}.{taken[0]} is set by Gearshift from the InferenceService"
        raise LaunchError(f"engineArgs {_ADDITIONAL_OPTION}: {message}")
    own |= {name: value for name, value in settings.items() if value is not None}
    return additional | {PLUGIN: own}, rest


def start_threshold(config: PodConfig) -> int | None:
    """Threshold that the shift engine starts with: 0 for SP, whose every step is sequence parallel; None: measured."""
    return 0 if Layout.SP in config.layouts else config.shift_threshold_tokens


def _captured_graphs(config: PodConfig, arguments: Sequence[str]) -> dict[str, object]:
    """Graphs no larger than the threshold, because a step that finds one never reaches the choice of the tree."""
    threshold = start_threshold(config)
    chosen = find_options(arguments, (_CAPTURE_OPTION, "--enforce-eager", "--compilation-config", "-cc"))
    if config.device is not Device.CUDA or threshold is None or chosen:
        return {}
    if threshold == 0:
        return {"--compilation-config": json.dumps({"cudagraph_mode": "NONE"})}
    return {_CAPTURE_OPTION: threshold} if threshold < DEFAULT_CAPTURE_TOKENS else {}


LAUNCHERS: Final[Mapping[str, Callable[[LaunchContext], Launch]]] = {
    "sim": launch_simulated,
    "tp": launch_tensor_parallel,
    "dp": launch_data_parallel,
    "shift": launch_shift,
}


def _launch_vllm(context: LaunchContext, parallelism: Mapping[str, object]) -> Launch:
    config = context.config
    memory, extra = _memory_arguments(config, context.residents)
    options: dict[str, object] = {
        "--model": config.model_path,
        "--revision": config.revision,
        "--served-model-name": config.model,
        "--host": "0.0.0.0",  # noqa: S104 - clients reach it at the pod's address
        "--port": context.port,
        **parallelism,
        **memory,
        "--kv-transfer-config": _kv_transfer(config),
    }
    _refuse_owned(extra)
    argv = [_python(config), "-m", "vllm.entrypoints.openai.api_server", *_flatten(options), QUIET, *extra]
    return Launch(tuple(argv), _vllm_env(context))


def _vllm_env(context: LaunchContext) -> dict[str, str]:
    config = context.config
    env = {"VLLM_NO_USAGE_STATS": "1"}
    if config.device is Device.CPU:
        env["VLLM_CPU_OMP_THREADS_BIND"] = omp_threads_bind(context.cpus, config.accelerators)
    if config.disaggregated:
        env |= _nixl_env(context)
    env |= config.engine_env
    env["VLLM_PLUGINS"] = _with_plugin(config.engine_env.get("VLLM_PLUGINS", ""))
    if config.device is Device.CPU:
        env["VLLM_CPU_KVCACHE_SPACE"] = _cpu_kv_space(config.engine_env, context.residents)
    return env


def _nixl_env(context: LaunchContext) -> dict[str, str]:
    env = {
        "VLLM_NIXL_SIDE_CHANNEL_HOST": context.pod_ip,
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(context.nixl_port + NIXL_PORT_STRIDE * context.index),
    }
    if context.config.device is Device.CPU:
        env["UCX_TLS"] = "tcp"
    return env


def _kv_transfer(config: PodConfig) -> str | None:
    if not config.disaggregated:
        return None
    transfer = {"kv_connector": "NixlConnector", "kv_role": "kv_both", "kv_load_failure_policy": "recompute"}
    if config.device is Device.CPU:
        transfer["kv_buffer_device"] = "cpu"
    return json.dumps(transfer, sort_keys=True)


def _memory_arguments(config: PodConfig, residents: int) -> tuple[dict[str, object], list[str]]:
    """The share of the accelerators' memory that one resident engine may use, and the other engine arguments."""
    if config.device is not Device.CUDA:
        return {}, list(config.engine_args)
    try:
        given, rest = take_option(config.engine_args, _MEMORY_OPTION)
        total = DEFAULT_GPU_MEMORY_UTILIZATION if given is None else float(given)
    except ValueError as error:
        raise LaunchError(f"engineArgs {_MEMORY_OPTION}: {error}") from error
    if not 0.0 < total <= 1.0:
        raise LaunchError(f"engineArgs {_MEMORY_OPTION}: {total} is not in (0, 1]")
    return {_MEMORY_OPTION: split_whole(total, residents)}, rest


def _cpu_kv_space(env: Mapping[str, str], residents: int) -> str:
    """Whole GiB of KV cache for one resident engine (vLLM takes no fractions); the user's word is for all together."""
    given = env.get("VLLM_CPU_KVCACHE_SPACE")
    if given is None:
        return str(DEFAULT_CPU_KV_GIB)
    if not given.isdecimal() or int(given) < residents:
        raise LaunchError(f"engineEnv VLLM_CPU_KVCACHE_SPACE: {given!r} is not {residents} or more whole GiB")
    return str(int(given) // residents)


def _with_plugin(plugins: str) -> str:
    named = [name for name in plugins.split(",") if name]
    return ",".join(named if PLUGIN in named else [*named, PLUGIN])


def _refuse_owned(arguments: Sequence[str]) -> None:
    found = owned_args(arguments)
    if found:
        raise LaunchError(f"engineArgs: {', '.join(found)} is set by Gearshift")


def _python(config: PodConfig) -> str:
    return config.engine_env.get(ENGINE_PYTHON, "python3")


def _flatten(options: Mapping[str, object]) -> list[str]:
    return [part for name, value in options.items() if value is not None for part in (name, str(value))]
