# SPDX-License-Identifier: Apache-2.0
"""How long a tick of the policy takes: one JSON line for each size and kind of service.

Run: ``tools/run python bench/policy.py``.
"""

import json
import statistics
import sys
import time
from dataclasses import replace

from gearshift.api.v1alpha1 import InferenceServiceSpec, InferenceServiceStatus
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.policy.decide import decide
from gearshift.policy.memory import fold, rebuild
from gearshift.policy.queries import Scope, queries
from gearshift.policy.snapshot import Metrics, PodView, Reading, Signal, Snapshot

ROUNDS = 50
BUDGET_MILLISECONDS = 50.0  # of a tick over 1,000 pods
NOW = 10_000.0


def service(pods: int) -> Snapshot:
    """A service with roles split that wants to flip and to shift, so that every decision runs to its end."""
    prefill = pods // 4
    spec = InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "parallelism": {"layouts": ["TP", "DP"]},
            "roles": [{"name": "Prefill", "replicas": prefill}, {"name": "Decode", "replicas": pods - prefill}],
        }
    )
    views = tuple(
        PodView(
            f"chat-{n}", f"uid-{n}", n, "r", Role.PREFILL if n < prefill else Role.DECODE, Layout.TP, 0,
            PodPhase.SERVING, ready=True, created_at=0.0, since=0.0, layouts=(Layout.TP, Layout.DP),
        )
        for n in range(pods)
    )  # fmt: skip
    readings = {
        (signal, role): Reading(0.01, NOW, 1) for signal in Signal for role in (None, Role.PREFILL, Role.DECODE)
    }
    readings[Signal.WAITING, None] = readings[Signal.WAITING, Role.PREFILL] = Reading(20.0 * pods, NOW, 1)
    return Snapshot(NOW, "prod", "chat", "uid", 1, spec, "r", views, Metrics(readings))


def cases(pods: int) -> dict[str, Snapshot]:
    """The kinds of tick that take longest."""
    busy = service(pods)
    failed = tuple(replace(view, failed=True) for view in busy.pods)
    unready = tuple(replace(view, ready=False, phase=PodPhase.STARTING) for view in busy.pods)
    fewer = InferenceServiceSpec.model_validate({**busy.spec.dump(), "replicas": 2})
    return {
        "flip": busy,
        "create_all": replace(busy, pods=()),
        "replace_all": replace(busy, pods=failed),
        "shrink_all": replace(busy, pods=unready, spec=fewer),
    }


def measure(snapshot: Snapshot) -> dict[str, float | str]:
    """Milliseconds of fold and decide together."""
    memory = fold(rebuild(0.0, InferenceServiceStatus()), replace(snapshot, at=snapshot.at - 1000))
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        plan = decide(snapshot, fold(memory, snapshot))
        took.append(1000 * (time.perf_counter() - began))
    return {
        "reason": plan.reason,
        "actions": float(len(plan.actions)),
        "value": round(statistics.median(took), 3),
        "worst": round(max(took), 3),
    }


def main() -> int:
    """Print a line for each case; 1 when a median is over the budget at 1,000 pods."""
    slow = False
    for pods in (10, 100, 1000):
        for name, snapshot in cases(pods).items():
            line = measure(snapshot)
            slow = slow or float(line["value"]) > BUDGET_MILLISECONDS
            print(json.dumps({"name": f"policy.{name}_{pods}_pods", "unit": "ms", **line}))
    began = time.perf_counter()
    asked = queries(Scope("prod", [f"chat-{n}" for n in range(1000)], 30.0))
    spent = round(1000 * (time.perf_counter() - began), 3)
    size = max(len(query) for query in asked.values())
    print(json.dumps({"name": "policy.queries_1000_pods", "unit": "ms", "value": spent, "longest_bytes": size}))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
