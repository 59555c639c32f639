# SPDX-License-Identifier: Apache-2.0
"""Expositions of engines and pods as the API server would list them, for tests of queries and discovery."""

from dataclasses import dataclass
from typing import Any

from tests.functional.prometheus.harness import Page


@dataclass(frozen=True)
class Rank:
    """What one data-parallel rank exports; rates are per second."""

    capacity: float = 0
    deferred: float = 0
    running: float = 0
    kv_usage: float = 0
    prompt_rate: float = 0
    generation_rate: float = 0
    first_tokens: tuple[float, float, float] = (0, 0, 0)  # requests per second below 0.5 s, to 1 s, to 2 s
    between: tuple[float, float, float] = (0, 0, 0)  # tokens per second likewise
    cached: float = 0  # share of the prompt tokens, 0..1
    loss: float | None = None  # seconds after which counters begin anew
    rename: float | None = None  # seconds after which the engine calls its model something else


def page(*ranks: Rank) -> Page:
    """Exposition of an engine with these ranks; the counters are exact at every moment."""

    def at(seconds: float) -> str:
        return "\n".join(line for index, rank in enumerate(ranks) for line in _lines(rank, index, seconds)) + "\n"

    return at


def _lines(rank: Rank, index: int, seconds: float) -> list[str]:
    model = "m" if rank.rename is None or seconds < rank.rename else "n"
    of = f'model_name="{model}",engine="{index}"'
    passed = seconds if rank.loss is None or seconds < rank.loss else seconds - rank.loss
    lines = [
        f'vllm:num_requests_waiting_by_reason{{{of},reason="capacity"}} {rank.capacity}',
        f'vllm:num_requests_waiting_by_reason{{{of},reason="deferred"}} {rank.deferred}',
        f"vllm:num_requests_running{{{of}}} {rank.running}",
        f"vllm:kv_cache_usage_perc{{{of}}} {rank.kv_usage}",
        f"vllm:prompt_tokens_total{{{of}}} {rank.prompt_rate * passed}",
        f"vllm:prompt_tokens_cached_total{{{of}}} {rank.cached * rank.prompt_rate * passed}",
        f"vllm:prompt_tokens_created{{{of}}} 1.0",
        f"vllm:generation_tokens_total{{{of}}} {rank.generation_rate * passed}",
    ]
    for name, rates in (("time_to_first_token", rank.first_tokens), ("inter_token_latency", rank.between)):
        total = 0.0
        for bound, rate in zip(("0.5", "1.0", "2.0"), rates, strict=True):
            total += rate * passed
            lines.append(f'vllm:{name}_seconds_bucket{{{of},le="{bound}"}} {total}')
        lines.append(f'vllm:{name}_seconds_bucket{{{of},le="+Inf"}} {total}')
        lines.append(f"vllm:{name}_seconds_count{{{of}}} {total}")
    return lines


def pod(
    name: str, port: int, *, namespace: str = "prod", service: str = "chat", component: str = "engine", **changes: Any
) -> dict[str, Any]:
    """A pod with its ports as the operator makes it; ``more_ports`` are of the sidecar."""
    sidecar = {
        "name": "sidecar",
        "image": "gearshift",
        "restartPolicy": "Always",
        "ports": [{"name": key, "containerPort": value} for key, value in changes.pop("sidecar_ports", {}).items()],
    }
    main_port = changes.pop("port_name", "engine")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {
                "app.kubernetes.io/name": "gearshift",
                "app.kubernetes.io/component": component,
                "gearshift.dev/service": service,
            },
        },
        "spec": {
            "nodeName": "node-1",
            "initContainers": [sidecar],
            "containers": [
                {"name": "main", "image": "gearshift", "ports": [{"name": main_port, "containerPort": port}]}
            ],
        },
        "status": {"podIP": "127.0.0.1", "phase": "Running", **changes},
    }
