# SPDX-License-Identifier: Apache-2.0
"""What an earlier operator left: services without a status, their children and their pods, made by the operator's own
builders."""

import math
from collections.abc import Iterator
from typing import Any, Final

from gearshift.api import names
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.manifests.children import build_children
from gearshift.operator.manifests.meta import Installation, Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.resources import BY_KIND, PODS, Resource
from gscluster.kwok import node_object

Json = dict[str, Any]
NAMESPACE_SIZE: Final = 50  # services
_PODS_OF_NODE: Final = 90  # of the 110 that it takes, so that there is room for others while one goes


def installation(image: str) -> Installation:
    """As the operator's process of this benchmark has it."""
    return Installation(
        image=image,
        engine_image_cuda=None,
        engine_image_cpu=None,
        image_pull_policy="IfNotPresent",
        operator_namespace="gearshift-system",
        operator_account="system:serviceaccount:gearshift-system:gearshift-operator",
        router_replicas=1,
        monitoring_namespace=None,
    )


def services(count: int, pods_each: int) -> list[Json]:
    """Simulated services, which ask for no GPU."""
    spec = {
        "model": {"uri": "hf://org/llama"},
        "engine": {"kind": "Simulated"},
        "replicas": pods_each,
        "parallelism": {"layouts": ["TP", "DP"]},
    }
    return [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"namespace": namespace_of(number), "name": f"chat-{number}"},
            "spec": spec,
        }
        for number in range(count)
    ]


def namespace_of(number: int) -> str:
    """Namespace of a service by its number."""
    return f"space-{number // NAMESPACE_SIZE}"


def nodes(pods: int) -> list[Json]:
    """Nodes enough for a number of pods, without kwok's taint: routers tolerate none."""
    found = [node_object(number, 8) for number in range(1, math.ceil(pods / _PODS_OF_NODE) + 2)]
    for node in found:
        node["spec"].pop("taints")
    return found


def belongings(service: Json, node_names: list[str], made: Installation) -> Iterator[tuple[Resource, Json]]:
    """Children and pods of a service as the API server returned it; the pods are bound to nodes already."""
    meta = service["metadata"]
    spec = InferenceServiceSpec.model_validate(service["spec"])
    owner = Owner(meta["namespace"], meta["name"], meta["uid"], spec)
    for child in build_children(owner, made):
        yield BY_KIND[child["kind"]], child
    for ordinal in range(spec.replicas or 0):
        pod = build_pod(owner, made, ordinal, spec.roles[0].name, spec.parallelism.start)
        pod["spec"]["nodeName"] = node_names[(int(meta["name"].rsplit("-", 1)[1]) * 7 + ordinal) % len(node_names)]
        yield PODS, pod
