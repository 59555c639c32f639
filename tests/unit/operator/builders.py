# SPDX-License-Identifier: Apache-2.0
"""Short ways to the objects that the operator's unit tests are about."""

from typing import Any

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.manifests.meta import Installation, Owner

INSTALLATION = Installation(
    image="example/gearshift:1",
    engine_image_cuda="example/vllm:cuda",
    engine_image_cpu=None,
    image_pull_policy="IfNotPresent",
    operator_namespace="gearshift-system",
    operator_account="system:serviceaccount:gearshift-system:gearshift-operator",
    router_replicas=1,
    monitoring_namespace=None,
)


def spec(**fields: Any) -> InferenceServiceSpec:
    """A spec of simulated pods."""
    whole = {"model": {"uri": "hf://org/llama"}, "engine": {"kind": "Simulated"}, **fields}
    return InferenceServiceSpec.model_validate(whole)


def owner(**fields: Any) -> Owner:
    """A service called chat."""
    return Owner("prod", "chat", "uid-1", spec(**fields))
