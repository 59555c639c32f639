# SPDX-License-Identifier: Apache-2.0
"""NetworkPolicy of the engine pods. Tokens guard the control port as well: a network plugin may ignore policies."""

from typing import Any, Final

from gearshift.api import names
from gearshift.operator.manifests import meta
from gearshift.operator.manifests.meta import Installation, Manifest, Owner

_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_MAX_ENGINES: Final = 8  # resident engines of one pod


def build_network_policy(owner: Owner, installation: Installation) -> Manifest:
    """Who may open a connection to an engine pod.

    | from | to |
    |---|---|
    | pods of the same service | all ports (KV transfer picks ports as it goes) |
    | router of the service | engines, control |
    | operator | control |
    | anyone, or the monitoring namespace when one is set | sidecar metrics |
    | monitoring namespace | engines (their metrics share the port of their API) |
    """
    operator = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: installation.operator_namespace}},
        "podSelector": {"matchLabels": {names.LABEL_COMPONENT: names.COMPONENT_OPERATOR}},
    }
    router = {"podSelector": {"matchLabels": meta.selector(owner, names.COMPONENT_ROUTER)}}
    peers = {"podSelector": {"matchLabels": meta.selector(owner, names.COMPONENT_ENGINE)}}
    policy = meta.child(owner, "networking.k8s.io/v1", "NetworkPolicy", owner.name, names.COMPONENT_ENGINE)
    policy["spec"] = {
        "podSelector": {"matchLabels": meta.selector(owner, names.COMPONENT_ENGINE)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": [peers]},
            {"from": [router], "ports": [_engines(), _port(names.PORT_CONTROL)]},
            {"from": [operator], "ports": [_port(names.PORT_CONTROL)]},
            *_monitoring(installation),
        ],
    }
    return policy


def _monitoring(installation: Installation) -> list[Manifest]:
    metrics = _port(names.PORT_SIDECAR_METRICS)
    if installation.monitoring_namespace is None:
        return [{"ports": [metrics]}]
    namespace = {"namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: installation.monitoring_namespace}}}
    return [{"from": [namespace], "ports": [metrics, _engines()]}]


def _port(number: int) -> dict[str, Any]:
    return {"port": number, "protocol": "TCP"}


def _engines() -> dict[str, Any]:
    return {**_port(names.PORT_ENGINE), "endPort": names.PORT_ENGINE + _MAX_ENGINES - 1}
