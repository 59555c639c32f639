# SPDX-License-Identifier: Apache-2.0
"""InferenceServices as an API server returns them, for the tests of the command line."""

import copy
from datetime import UTC, datetime
from typing import Any

from gearshift.cli.service import Service

Json = dict[str, Any]
NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)

TRANSITION: Json = {
    "id": "aaaaaaaaaaaa-chat-1",
    "pod": "chat-1",
    "kind": "Layout",
    "from": "TP",
    "to": "DP",
    "phase": "Serving",
    "result": "Committed",
    "reason": "Verified",
    "startedAt": "2026-12-01T11:55:00Z",
    "finishedAt": "2026-12-01T11:55:02Z",
    "durationMilliseconds": 2140,
    "proof": {"epoch": 3, "ranks": 8, "probeTokens": 1, "routers": 2},
}
BODY: Json = {
    "apiVersion": "gearshift.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {
        "name": "chat",
        "namespace": "models",
        "uid": "5e1f",
        "generation": 2,
        "creationTimestamp": "2026-12-01T09:00:00Z",
    },
    "spec": {
        "model": {"uri": "hf://org/llama"},
        "parallelism": {"layouts": ["TP", "DP"]},
        "roles": [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1, "max": 2}],
        "policy": {"actuation": "Approve"},
    },
    "status": {
        "observedGeneration": 2,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Serving",
                "message": "all well",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-12-01T11:00:00Z",
            },
            {
                "type": "LayoutConverged",
                "status": "False",
                "reason": "AwaitingApproval",
                "message": "plan bbbbbbbbbbbb: chat-0 to DP",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-12-01T11:59:30Z",
            },
            {
                "type": "MetricsAvailable",
                "status": "False",
                "reason": "MetricsMissing",
                "message": "unknown: itl_p90_seconds, waiting of Decode",
                "observedGeneration": 2,
                "lastTransitionTime": "2026-12-01T11:59:00Z",
            },
        ],
        "replicas": 2,
        "readyReplicas": 2,
        "layout": "DP=1,TP=1",
        "split": "1/1",
        "url": "http://chat-router.models.svc",
        "load": {
            "prefill": {"demandTokensPerSecond": 4100},
            "decode": {"demandTokensPerSecond": 390, "capacityTokensPerSecond": 1200},
            "prefixHitPercent": 35,
            "capacityFrom": "model",
            "at": "2026-12-01T11:59:40Z",
        },
        "startup": {"seconds": 95, "pods": 2, "revision": "r1"},
        "roles": [{"name": "Prefill", "desired": 1, "ready": 1}, {"name": "Decode", "desired": 1, "ready": 1}],
        "pods": [
            {"name": "chat-0", "role": "Prefill", "layout": "TP", "epoch": 0, "phase": "Serving", "ready": True},
            {"name": "chat-1", "role": "Decode", "layout": "DP", "epoch": 3, "phase": "Serving", "ready": True},
        ],
        "transitionHistory": [TRANSITION],
        "lastDecision": {
            "plan": "bbbbbbbbbbbb",
            "action": "Hold",
            "reason": "AwaitingApproval",
            "message": "Queueing: 9 requests wait per pod; approve plan bbbbbbbbbbbb",
            "inputs": {"waitingPerPod": "9", "kvUsage": "0.3"},
            "at": "2026-12-01T11:59:30Z",
        },
    },
}


def service(*, spec: Json | None = None, status: Json | None = None, metadata: Json | None = None) -> Service:
    """The service above with some fields of its spec, status or metadata replaced."""
    body = copy.deepcopy(BODY)
    for part, changes in (("spec", spec), ("status", status), ("metadata", metadata)):
        body[part].update(changes or {})
    return Service.read(body)


def record(**changes: Any) -> Json:
    """The transition above with some fields replaced."""
    return {**copy.deepcopy(TRANSITION), **changes}
