# SPDX-License-Identifier: Apache-2.0
"""Which engine processes a pod runs, and how each is started."""

import json
from collections.abc import Callable, Sequence

import pytest

from gearshift.api.vocabulary import EngineKind, Layout
from gearshift.sidecar.engines import EnginePlan, EngineSet, families, plan_engines
from gearshift.sidecar.settings import Settings

MakeSettings = Callable[..., Settings]


def option(argv: Sequence[str], name: str) -> str | None:
    return argv[argv.index(name) + 1] if name in argv else None


def spec(plan: EnginePlan) -> tuple[list[str], dict[str, str]]:
    assert plan.spec is not None
    return plan.spec.argv, plan.spec.env


def test_a_family_for_tensor_and_one_for_data_parallelism_the_initial_first() -> None:
    assert families(EngineKind.VLLM, [Layout.TP, Layout.DP], Layout.DP) == {"dp": (Layout.DP,), "tp": (Layout.TP,)}
    assert families(EngineKind.VLLM, [Layout.TP], Layout.TP) == {"tp": (Layout.TP,)}


def test_an_engine_with_a_sequence_parallel_tree_serves_tensor_parallelism_too() -> None:
    grouped = families(EngineKind.VLLM, [Layout.TP, Layout.SHIFT, Layout.DP, Layout.SP], Layout.TP)
    assert grouped == {"shift": (Layout.TP, Layout.SHIFT, Layout.SP), "dp": (Layout.DP,)}


def test_one_simulated_engine_for_everything() -> None:
    assert families(EngineKind.SIMULATED, list(Layout), Layout.DP) == {
        "sim": (Layout.DP, Layout.TP, Layout.SP, Layout.SHIFT)
    }


def test_the_simulated_engine_is_told_the_start_state(make_settings: MakeSettings) -> None:
    settings = make_settings(
        engine="Simulated", layouts=["TP", "DP"], initial_layout="DP", accelerators=8, engine_args=["--speed", "10"]
    )
    (plan,) = plan_engines(settings, [0, 1]).plans
    argv, _ = spec(plan)
    assert argv[:3] == ["python3", "-m", "gearshift.sim.engine"]
    assert option(argv, "--layout") == "DP"
    assert option(argv, "--accelerators") == "8"
    assert option(argv, "--port") == "8000"
    assert "--sequence-parallel-size" not in argv
    assert argv[-2:] == ["--speed", "10"]


def test_resident_engines_listen_on_successive_ports(make_settings: MakeSettings) -> None:
    engines = plan_engines(make_settings(disaggregated=True), [0, 1])
    assert [(plan.name, plan.port) for plan in engines.plans] == [("tp", 8000), ("dp", 8001)]
    assert option(spec(engines.serving(Layout.TP))[0], "--tensor-parallel-size") == "2"
    assert option(spec(engines.serving(Layout.DP))[0], "--data-parallel-size") == "2"
    sides = [spec(plan)[1]["VLLM_NIXL_SIDE_CHANNEL_PORT"] for plan in engines.plans]
    assert sides == ["5600", "5616"]


def shift_argv(make_settings: MakeSettings, **changes: object) -> list[str]:
    (plan,) = plan_engines(make_settings(initial_layout=changes["layouts"][0], **changes), [0, 1]).plans  # type: ignore[index]
    assert plan.name == "shift"
    return spec(plan)[0]


def test_shift_is_a_tensor_parallel_engine_with_its_own_worker(make_settings: MakeSettings) -> None:
    argv = shift_argv(
        make_settings, layouts=["Shift", "TP"], accelerators=4, sequence_parallel_size=2, shift_threshold_tokens=96
    )
    assert option(argv, "--tensor-parallel-size") == "4"
    assert option(argv, "--worker-cls") == "gearshift.engine.shift.cpu.ShiftWorker"
    assert json.loads(option(argv, "--additional-config") or "") == {
        "gearshift": {"sequenceParallelSize": 2, "thresholdTokens": 96}
    }


def test_sequence_parallel_alone_is_shift_with_threshold_zero(make_settings: MakeSettings) -> None:
    argv = shift_argv(make_settings, layouts=["SP"])
    assert json.loads(option(argv, "--additional-config") or "") == {"gearshift": {"thresholdTokens": 0}}


def test_the_users_own_settings_of_the_shift_engine_are_kept(make_settings: MakeSettings) -> None:
    given = {"mine": 1, "gearshift": {"keyValueExchange": "gather"}}
    argv = shift_argv(make_settings, layouts=["Shift"], engine_args=["--additional-config", json.dumps(given)])
    assert argv.count("--additional-config") == 1
    assert json.loads(option(argv, "--additional-config") or "") == given


@pytest.mark.parametrize(
    ("changes", "graphs"),
    [
        ({"layouts": ["Shift"]}, {}),
        ({"layouts": ["Shift"], "shift_threshold_tokens": 1024}, {}),
        ({"layouts": ["Shift"], "shift_threshold_tokens": 128}, {"--max-cudagraph-capture-size": "128"}),
        ({"layouts": ["Shift"], "shift_threshold_tokens": 128, "engine_args": ["--enforce-eager"]}, {}),
        ({"layouts": ["SP"]}, {"--compilation-config": '{"cudagraph_mode": "NONE"}'}),
    ],
)
def test_no_graph_is_larger_than_the_threshold(
    make_settings: MakeSettings, changes: dict[str, object], graphs: dict[str, str]
) -> None:
    argv = shift_argv(make_settings, device="CUDA", **changes)
    assert option(argv, "--worker-cls") == "gearshift.engine.shift.cuda.ShiftWorker"
    names = ("--max-cudagraph-capture-size", "--compilation-config")
    assert {name: option(argv, name) for name in names if name in argv} == graphs


def test_split_roles_start_with_a_connector(make_settings: MakeSettings) -> None:
    plan = plan_engines(make_settings(disaggregated=True), [0]).plans[0]
    argv, env = spec(plan)
    assert json.loads(option(argv, "--kv-transfer-config") or "") == {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_both",
        "kv_buffer_device": "cpu",
        "kv_load_failure_policy": "recompute",
    }
    assert env["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "10.1.2.3"
    assert env["UCX_TLS"] == "tcp"


def test_unified_roles_start_without_one(make_settings: MakeSettings) -> None:
    argv, env = spec(plan_engines(make_settings(), [0]).plans[0])
    assert "--kv-transfer-config" not in argv
    assert not [name for name in env if "NIXL" in name]


def test_accelerators_keep_their_own_buffers_and_transports(make_settings: MakeSettings) -> None:
    argv, env = spec(plan_engines(make_settings(device="CUDA", disaggregated=True), [0]).plans[0])
    assert "kv_buffer_device" not in json.loads(option(argv, "--kv-transfer-config") or "")
    assert "UCX_TLS" not in env
    assert "VLLM_CPU_OMP_THREADS_BIND" not in env


def test_the_user_environment_wins_but_the_plugin_stays(make_settings: MakeSettings) -> None:
    settings = make_settings(
        disaggregated=True,
        engine_env={
            "UCX_TLS": "rc,tcp",
            "VLLM_PLUGINS": "mine",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "GEARSHIFT_ENGINE_PYTHON": "/opt/env/bin/python",
        },
    )
    argv, env = spec(plan_engines(settings, [0, 1]).plans[0])
    assert argv[0] == "/opt/env/bin/python"
    assert env["UCX_TLS"] == "rc,tcp"
    assert env["VLLM_PLUGINS"] == "mine,gearshift"
    assert env["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


def test_a_plugin_named_already_is_not_named_twice(make_settings: MakeSettings) -> None:
    settings = make_settings(engine_env={"VLLM_PLUGINS": "gearshift,mine"})
    assert spec(plan_engines(settings, [0]).plans[0])[1]["VLLM_PLUGINS"] == "gearshift,mine"


@pytest.mark.parametrize(
    ("layouts", "given", "each"),
    [(["TP"], None, "1"), (["TP", "DP"], None, "1"), (["TP", "DP"], "7", "3"), (["TP"], "7", "7")],
)
def test_residents_split_the_memory_of_a_processor(
    make_settings: MakeSettings, layouts: list[str], given: str | None, each: str
) -> None:
    env = {} if given is None else {"VLLM_CPU_KVCACHE_SPACE": given}
    plans = plan_engines(make_settings(layouts=layouts, engine_env=env), [0]).plans
    assert [spec(plan)[1]["VLLM_CPU_KVCACHE_SPACE"] for plan in plans] == [each] * len(layouts)


@pytest.mark.parametrize(
    ("layouts", "arguments", "each"),
    [
        (["TP"], [], 0.9),
        (["TP", "DP"], [], 0.45),
        (["TP", "DP"], ["--gpu-memory-utilization", "0.8"], 0.4),
        (["TP", "DP"], ["--gpu-memory-utilization=0.8"], 0.4),
    ],
)
def test_residents_split_the_memory_of_an_accelerator(
    make_settings: MakeSettings, layouts: list[str], arguments: list[str], each: float
) -> None:
    plans = plan_engines(make_settings(device="CUDA", layouts=layouts, engine_args=arguments), [0]).plans
    for plan in plans:
        argv, _ = spec(plan)
        assert [argument for argument in argv if argument.startswith("--gpu-memory-utilization")] == [
            "--gpu-memory-utilization"
        ]
        assert option(argv, "--gpu-memory-utilization") == str(each)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"layouts": ["Shift"], "engine_args": ["--additional-config", '{"gearshift": {"thresholdTokens": 3}}']},
            "engineArgs --additional-config: gearshift.thresholdTokens is set by Gearshift",
        ),
        ({"layouts": ["Shift"], "engine_args": ["--additional-config=[1]"]}, "'[1]' is not a JSON object"),
        ({"layouts": ["Shift"], "engine_args": ["--additional-config={"]}, "engineArgs --additional-config: "),
        (
            {"layouts": ["Shift"], "engine_args": ["--worker-cls=x.Y"]},
            "engineArgs: --worker-cls=x.Y is set by Gearshift",
        ),
        ({"engine_args": ["--port", "9"]}, "engineArgs: --port is set by Gearshift"),
        ({"engine_args": ["--tensor_parallel_size=4"]}, "engineArgs: --tensor_parallel_size=4 is set by Gearshift"),
        ({"engine_args": ["--uds=/tmp/x"]}, "engineArgs: --uds=/tmp/x is set by Gearshift"),
        ({"engine": "Simulated", "engine_args": ["--role=Decode"]}, "engineArgs: --role=Decode is set by Gearshift"),
        ({"engine_env": {"VLLM_CPU_KVCACHE_SPACE": "1"}}, "engineEnv VLLM_CPU_KVCACHE_SPACE: '1' is not 2 or more"),
        ({"engine_env": {"VLLM_CPU_KVCACHE_SPACE": "a"}}, "engineEnv VLLM_CPU_KVCACHE_SPACE: 'a'"),
        ({"device": "CUDA", "engine_args": ["--gpu-memory-utilization", "x"]}, "engineArgs --gpu-memory-utilization"),
        ({"device": "CUDA", "engine_args": ["--gpu-memory-utilization", "1.5"]}, "1.5 is not in (0, 1]"),
        ({"device": "CUDA", "engine_args": ["--gpu-memory-utilization"]}, "has no value"),
    ],
)
def test_what_cannot_be_started_is_refused_by_field_and_value(
    make_settings: MakeSettings, changes: dict[str, object], words: str
) -> None:
    engines = plan_engines(make_settings(**changes), [0, 1])
    assert words in engines.refusal
    assert any(plan.spec is None for plan in engines.plans)


def test_the_plan_of_a_pod_is_the_same_after_a_restart(make_settings: MakeSettings) -> None:
    settings = make_settings(disaggregated=True)
    assert plan_engines(settings, [0, 1]) == plan_engines(settings, [0, 1])


def test_a_layout_that_no_engine_serves() -> None:
    with pytest.raises(KeyError, match="SP"):
        EngineSet(()).serving(Layout.SP)
