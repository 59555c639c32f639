# SPDX-License-Identifier: Apache-2.0
"""What the shift engine relies on beyond what upstream promises to plugins; the same in all supported versions."""

from typing import Final

from gearshift.engine.compat.symbols import Function, Symbol

_GROUPS: Final = "distributed.parallel_state"
_LOADER: Final = "model_executor.model_loader"
_RUNNER: Final = (
    ("_dummy_run", ("num_tokens",)),
    ("get_model", ()),
    ("profile_run", ()),
)

SHIFT: Final[tuple[Symbol | Function, ...]] = (
    Symbol(
        "v1.worker.gpu_worker",
        "Worker",
        methods=(("load_model", ()), ("compile_or_warm_up_model", ()), ("execute_model", ("scheduler_output",))),
    ),
    Symbol("v1.worker.cpu_worker", "CPUWorker", methods=(("compile_or_warm_up_model", ()),)),
    Symbol("v1.worker.gpu_model_runner", "GPUModelRunner", methods=_RUNNER, assigned=("model_memory_usage",)),
    Symbol("v1.worker.gpu.model_runner", "GPUModelRunner", methods=_RUNNER, assigned=("model_memory_usage",)),
    Symbol("v1.core.sched.output", "SchedulerOutput", assigned=("total_num_scheduled_tokens",)),
    Function(_GROUPS, "init_model_parallel_group", ("group_ranks", "local_rank", "backend", "group_name")),
    Function(_GROUPS, "get_tp_group", ()),
    Function(_GROUPS, "get_world_group", ()),
    Function(_GROUPS, "_TP"),
    Symbol(
        _GROUPS,
        "GroupCoordinator",
        assigned=("device_group", "cpu_group", "rank_in_group", "world_size", "local_rank"),
    ),
    Symbol(
        "config.compilation",
        "CompilationConfig",
        assigned=(
            "static_forward_context",
            "splitting_ops",
            "cudagraph_mode",
            "max_cudagraph_capture_size",
            "traced_files",
            "pass_config",
        ),
    ),
    Symbol("config.vllm", "VllmConfig", assigned=("additional_config", "compilation_config", "parallel_config")),
    Function("config.vllm", "set_current_vllm_config", ("vllm_config",)),
    Symbol(
        "config.parallel",
        "ParallelConfig",
        assigned=(
            "worker_cls",
            "tensor_parallel_size",
            "pipeline_parallel_size",
            "enable_expert_parallel",
            "decode_context_parallel_size",
            "prefill_context_parallel_size",
            "enable_dbo",
        ),
    ),
    Symbol(
        "config.model",
        "ModelConfig",
        methods=(
            ("use_mla", ()),
            ("is_multimodal_model", ()),
            ("is_encoder_decoder", ()),
            ("is_moe", ()),
            ("is_hybrid", ()),
            ("is_attention_free", ()),
            ("get_total_num_kv_heads", ()),
            ("get_hidden_size", ()),
        ),
    ),
    Symbol(
        "model_executor.layers.attention.attention",
        "Attention",
        methods=(("forward", ("query", "key", "value")),),
        assigned=("layer_name", "num_heads", "num_kv_heads", "head_size"),
    ),
    Function(_LOADER, "get_model", ("vllm_config",)),
    Function(_LOADER, "register_model_loader", ("load_format",)),
    Symbol(f"{_LOADER}.default_loader", "DefaultModelLoader", methods=(("get_all_weights", ()),)),
    Symbol(f"{_LOADER}.base_loader", "BaseModelLoader", methods=(("load_model", ()),)),
    Function(f"{_LOADER}.utils", "initialize_model", ("vllm_config", "model_config")),
    Function(f"{_LOADER}.utils", "process_weights_after_loading", ("model", "model_config", "target_device")),
    Function("utils.torch_utils", "set_default_torch_dtype", ("dtype",)),
    Function("utils.torch_utils", "direct_register_custom_op", ("op_name", "op_func", "fake_impl")),
)
