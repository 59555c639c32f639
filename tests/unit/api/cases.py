# SPDX-License-Identifier: Apache-2.0
"""Specs that are and are not servable, shared by the Python check and the API server's."""

from typing import Any

MODEL = {"uri": "hf://org/llama"}
SIMULATED = {"kind": "Simulated"}


def spec(**parts: Any) -> dict[str, Any]:
    """A small servable spec with some parts replaced."""
    return {"model": MODEL, "engine": SIMULATED} | parts


def roles(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"roles": list(entries)}


GOOD: dict[str, dict[str, Any]] = {
    "least": {"model": MODEL},
    "cpu": spec(engine={"kind": "VLLM", "device": "CPU"}, pod={"accelerators": 2}),
    "all layouts": spec(parallelism={"layouts": ["TP", "SP", "DP", "Shift"], "initial": "Shift"}),
    "shift knobs": spec(parallelism={"layouts": ["Shift"], "sequenceParallelSize": 4, "shiftThresholdTokens": 512}),
    "shift on vllm": spec(engine={"kind": "VLLM"}, parallelism={"layouts": ["Shift", "DP", "TP"]}),
    "sequence parallel on vllm": spec(engine={"kind": "VLLM"}, parallelism={"layouts": ["SP", "DP"]}),
    "split roles": spec(**roles({"name": "Prefill", "replicas": 2}, {"name": "Decode", "min": 1, "max": 3})),
    "scaled to zero": spec(replicas=0),
    "claim": spec(model={"uri": "pvc://models/llama/8b", "servedName": "llama-8b"}),
    "override": spec(override={"layout": "TP", "until": "2026-12-01T00:00:00Z"}),
    "a layout for each role": spec(
        parallelism={"layouts": ["DP", "TP"]},
        **roles({"name": "Prefill", "layout": "DP"}, {"name": "Decode", "layout": "TP"}),
    ),
    "scaled by the policy": spec(
        scaling={"owner": "Gearshift"}, **roles({"name": "Unified", "min": 1, "max": 4, "replicas": 2})
    ),
    "scaled by the policy from zero": spec(
        scaling={"owner": "Gearshift", "standby": 1}, **roles({"name": "Unified", "replicas": 0, "max": 2})
    ),
    "scaled by someone else": spec(scaling={"owner": "External"}, replicas=3, **roles({"name": "Unified", "max": 8})),
    "router scaled by someone else": spec(router={"scaling": {"owner": "External"}}),
    "router replicas": spec(router={"replicas": 3, "scaling": {}}),
    "queries": spec(
        policy={"queries": [{"signal": "Waiting", "query": "sum(a)"}, {"signal": "Running", "query": "sum(b)"}]}
    ),
    "queries of roles": spec(
        policy={
            "queries": [
                {"signal": "Waiting", "scope": "Prefill", "query": "sum(a)"},
                {"signal": "Waiting", "query": "sum(a)"},
            ]
        },
        **roles({"name": "Prefill"}, {"name": "Decode"}),
    ),
    "budget": spec(policy={"maxAccelerators": 16, "maxTransitionsPerHour": 6}),
    "engine arguments": spec(
        engine={"args": ["--max-model-len=1024", "--quantization", "fp8", "--seed", "-1", "-O3", "host", "", "-", "--"]}
    ),
    "secret": spec(
        engine={"env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]}
    ),
}

# name -> (spec, part of the message that both checks give)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "query of a role that is not there": (
        spec(policy={"queries": [{"signal": "Waiting", "scope": "Decode", "query": "sum(a)"}]}),
        "policy.queries: scope Decode is not one of roles",
    ),
    "prefill without decode": (spec(**roles({"name": "Prefill"})), "Prefill and Decode come together"),
    "min above max": (
        spec(**roles({"name": "Unified", "min": 11, "max": 4, "replicas": 11})),
        "role Unified: min 11 is above max 4",
    ),
    "replicas below min": (spec(**roles({"name": "Unified", "min": 3})), "replicas 1 is below min 3"),
    "replicas above max": (
        spec(**roles({"name": "Unified", "max": 120, "replicas": 205})),
        "replicas 205 is above max 120",
    ),
    "total below floors": (
        spec(replicas=1, **roles({"name": "Prefill"}, {"name": "Decode"})),
        "replicas: 1 is below the sum of the roles' floors",
    ),
    "initial not allowed": (
        spec(parallelism={"layouts": ["TP"], "initial": "DP"}),
        "initial: DP is not one of layouts",
    ),
    "sequence parallel without layout": (
        spec(parallelism={"layouts": ["TP"], "sequenceParallelSize": 4}),
        "sequenceParallelSize: 4 needs layout SP or Shift",
    ),
    "threshold without layout": (
        spec(parallelism={"layouts": ["TP"], "shiftThresholdTokens": 4}),
        "shiftThresholdTokens needs layout Shift",
    ),
    "sequence parallel does not divide": (
        spec(pod={"accelerators": 4}, parallelism={"layouts": ["SP"], "sequenceParallelSize": 8}),
        "sequenceParallelSize: 8 does not divide pod.accelerators 4",
    ),
    "SP and shift on vllm": (
        spec(engine={"kind": "VLLM"}, parallelism={"layouts": ["Shift", "SP"]}),
        "engine.kind VLLM serves SP without TP and Shift",
    ),
    "SP and TP on vllm": (
        spec(engine={"kind": "VLLM"}, parallelism={"layouts": ["TP", "DP", "SP"]}),
        "engine.kind VLLM serves SP without TP and Shift",
    ),
    "layouts of one accelerator": (
        spec(pod={"accelerators": 1}, parallelism={"layouts": ["TP", "DP"]}),
        "a pod with pod.accelerators 1 has only layout TP",
    ),
    "replicas of a service that the policy scales": (
        spec(scaling={"owner": "Gearshift"}, replicas=12, **roles({"name": "Unified", "max": 40})),
        "replicas: 12 is for scaling.owner External",
    ),
    "layout of a role": (
        spec(
            parallelism={"layouts": ["TP", "DP"]},
            **roles({"name": "Prefill", "layout": "TP"}, {"name": "Decode", "layout": "SP"}),
        ),
        "roles: layout SP of a role is not one of parallelism.layouts",
    ),
    "standby without an owner": (
        spec(scaling={"standby": 1}, **roles({"name": "Unified", "max": 4})),
        "scaling.standby needs a service that the policy scales",
    ),
    "scaled by the policy without room": (
        spec(scaling={"owner": "Gearshift"}, **roles({"name": "Unified", "min": 3, "max": 3, "replicas": 3})),
        "scaling.owner: Gearshift needs exactly one role",
    ),
    "scaled by the policy without max": (
        spec(scaling={"owner": "Gearshift"}),
        "scaling.owner: Gearshift needs exactly one role",
    ),
    "scaled by the policy with split roles": (
        spec(scaling={"owner": "Gearshift"}, **roles({"name": "Prefill", "max": 4}, {"name": "Decode", "max": 4})),
        "scaling.owner: Gearshift needs exactly one role",
    ),
    "replicas of a router that someone else scales": (
        spec(router={"replicas": 12, "scaling": {"owner": "External"}}),
        "replicas: 12 is for scaling.owner Gearshift",
    ),
    "override layout": (
        spec(override={"layout": "SP", "until": "2026-12-01T00:00:00Z"}),
        "override.layout: SP is not one of parallelism.layouts",
    ),
    "override role": (
        spec(override={"role": "Decode", "until": "2026-12-01T00:00:00Z"}),
        "override.role: Decode is not one of roles",
    ),
    "override of both": (
        spec(override={"layout": "TP", "role": "Unified", "until": "2026-12-01T00:00:00Z"}),
        "override needs exactly one of layout and role",
    ),
    "owned argument": (
        spec(engine={"args": ["--max-model-len=1024", "--port=3"]}),
        "args: --port=3 is set by Gearshift",
    ),
    "owned argument, with the underscore that vLLM takes too": (
        spec(engine={"args": ["--tensor_parallel_size=4"]}),
        "args: --tensor_parallel_size=4 is set by Gearshift",
    ),
    "abbreviated owned argument": (
        spec(engine={"args": ["--enforce-eager", "--trust-remote"]}),
        "args: --trust-remote is set by Gearshift",
    ),
    "abbreviated short owned argument": (spec(engine={"args": ["-t", "4"]}), "args: -t is set by Gearshift"),
    "key of an owned argument": (
        spec(engine={"args": ["--kv-transfer-config.kv_role=kv_producer"]}),
        "args: --kv-transfer-config.kv_role=kv_producer is set by Gearshift",
    ),
    "owned variable": (
        spec(engine={"env": [{"name": "GEARSHIFT_POD_CONFIG", "value": "x"}]}),
        "GEARSHIFT_POD_CONFIG is set by the operator",
    ),
    "variable without value": (spec(engine={"env": [{"name": "A"}]}), "A needs exactly one of value and valueFrom"),
    "short window": (spec(policy={"window": "1s"}), "window: 1s is not between 5s and 1h"),
    "long drain": (spec(policy={"drainTimeout": "2h"}), "drainTimeout: 2h is not between 1s and 1h"),
}

# Refused by the schema alone: each side words it its own way, both name the field.
BAD_BY_SCHEMA: dict[str, tuple[dict[str, Any], str]] = {
    "seven accelerators": (spec(pod={"accelerators": 7}), "accelerators"),
    "no accelerators": (spec(pod={"accelerators": 0}), "accelerators"),
    "negative accelerators": (spec(pod={"accelerators": -1}), "accelerators"),
    "huge replicas": (spec(replicas=10**12), "replicas"),
    "unknown layout": (spec(parallelism={"layouts": ["PP"]}), "layouts"),
    "no layout": (spec(parallelism={"layouts": []}), "layouts"),
    "same layout twice": (spec(parallelism={"layouts": ["TP", "TP"]}), "layouts"),
    "duplicate roles": (spec(**roles({"name": "Unified"}, {"name": "Unified"})), "roles"),
    "unknown role": (spec(**roles({"name": "Draft"})), "name"),
    "metadata address": (spec(model={"uri": "http://169.254.169.254/latest"}), "uri"),
    "empty uri": (spec(model={"uri": ""}), "uri"),
    "bad duration": (spec(policy={"dwell": "soon"}), "dwell"),
    "no model": ({"engine": SIMULATED}, "model"),
    "query of an unknown signal": (spec(policy={"queries": [{"signal": "Love", "query": "a"}]}), "signal"),
    "empty query": (spec(policy={"queries": [{"signal": "Waiting", "query": ""}]}), "query"),
    "endless query": (spec(policy={"queries": [{"signal": "Waiting", "query": "a" * 1025}]}), "query"),
    "signal listed twice": (spec(policy={"queries": [{"signal": "Waiting", "query": "a"}] * 2}), "queries"),
    "too many queries": (spec(policy={"queries": [{"signal": "Waiting", "query": "a"}] * 33}), "queries"),
    "bad until": (spec(override={"layout": "TP", "until": "tomorrow"}), "until"),
}
