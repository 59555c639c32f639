# SPDX-License-Identifier: Apache-2.0
"""The headless Service that lists ready engine pods, and the Service of the router."""

from gearshift.api import names
from gearshift.operator.manifests import meta
from gearshift.operator.manifests.meta import Manifest, Owner

ROUTER_PORT = 80


def build_pods_service(owner: Owner) -> Manifest:
    """Headless: its EndpointSlices are the router's list of pods."""
    service = meta.child(owner, "v1", "Service", names.pods_service_name(owner.name), names.COMPONENT_ENGINE)
    service["spec"] = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": False,
        "selector": meta.selector(owner, names.COMPONENT_ENGINE),
        "ports": [
            _port("engine", names.PORT_ENGINE, names.PORT_ENGINE),
            _port("control", names.PORT_CONTROL, names.PORT_CONTROL),
            _port("metrics", names.PORT_SIDECAR_METRICS, names.PORT_SIDECAR_METRICS),
        ],
    }
    return service


def build_router_service(owner: Owner) -> Manifest:
    """The address that clients use."""
    service = meta.child(owner, "v1", "Service", names.router_name(owner.name), names.COMPONENT_ROUTER)
    service["spec"] = {
        "type": "ClusterIP",
        "selector": meta.selector(owner, names.COMPONENT_ROUTER),
        "ports": [
            _port("http", ROUTER_PORT, names.PORT_ROUTER),
            _port("metrics", names.PORT_ROUTER_METRICS, names.PORT_ROUTER_METRICS),
        ],
    }
    return service


def router_url(owner: Owner) -> str:
    """Address of the router inside the cluster."""
    return f"http://{names.router_name(owner.name)}.{owner.namespace}.svc"


def _port(name: str, port: int, target: int) -> Manifest:
    return {"name": name, "port": port, "targetPort": target, "protocol": "TCP"}
