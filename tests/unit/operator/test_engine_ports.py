# SPDX-License-Identifier: Apache-2.0
"""Each resident engine has a named port, by which Prometheus finds it."""

from typing import Any

import pytest

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.manifests.containers import engine
from gearshift.operator.manifests.meta import Installation

INSTALLATION = Installation(
    image="gearshift",
    engine_image_cuda="cuda",
    engine_image_cpu="cpu",
    image_pull_policy="Never",
    operator_namespace="gearshift-system",
    operator_account="system:serviceaccount:gearshift-system:gearshift-operator",
    router_replicas=1,
    monitoring_namespace=None,
)


@pytest.mark.parametrize(
    ("kind", "layouts", "expected"),
    [
        ("VLLM", ["TP"], {"engine": 8000}),
        ("VLLM", ["DP"], {"engine": 8000}),
        ("VLLM", ["TP", "DP"], {"engine": 8000, "engine-1": 8001}),
        ("Simulated", ["TP", "DP", "Shift"], {"engine": 8000}),
    ],
)
def test_one_port_a_resident_engine(kind: str, layouts: list[str], expected: dict[str, int]) -> None:
    """vLLM keeps one engine a layout family; the Simulated engine serves every layout itself."""
    body: dict[str, Any] = {
        "model": {"uri": "hf://org/model"},
        "engine": {"kind": kind},
        "parallelism": {"layouts": layouts},
    }
    container = engine(InferenceServiceSpec.model_validate(body), INSTALLATION)
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == expected
