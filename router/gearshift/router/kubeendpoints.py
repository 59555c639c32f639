# SPDX-License-Identifier: Apache-2.0
"""The product's endpoint source: pods of the service and the EndpointSlices of its headless Service, merged.

Pods say who exists, with uid and address; slices say who is ready, which counts only for a pod whose own state stream
is lost.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Iterable
from typing import Final

from aiohttp import ClientSession, DummyCookieJar

from gearshift.api import names
from gearshift.api.routerconfig import RouterConfig
from gearshift.router.endpoints import Endpoint, Publish
from gearshift.router.kube import LINE_BYTES, Object, Reflector
from gearshift.router.kubeaccess import KubeAccess

log = logging.getLogger(__name__)

FINISHED: Final = frozenset({"Succeeded", "Failed"})


class KubeEndpoints:
    """Endpoints of one InferenceService, from the API server."""

    def __init__(self, config: RouterConfig, access: KubeAccess) -> None:
        self._config = config
        self._access = access

    async def run(self, publish: Publish) -> None:
        """Publish the endpoints at every change, from the first complete list of pods on."""
        config, dirty = self._config, asyncio.Event()
        pods_path = f"/api/v1/namespaces/{config.namespace}/pods"
        slices_path = f"/apis/discovery.k8s.io/v1/namespaces/{config.namespace}/endpointslices"
        service = names.pods_service_name(config.service)
        async with (
            ClientSession(cookie_jar=DummyCookieJar(), read_bufsize=LINE_BYTES) as session,
            asyncio.TaskGroup() as group,
        ):
            pods = Reflector(
                session, self._access, pods_path, f"{names.LABEL_SERVICE_UID}={config.service_uid}", dirty.set
            )
            slices = Reflector(session, self._access, slices_path, f"kubernetes.io/service-name={service}", dirty.set)
            group.create_task(pods.run())
            group.create_task(slices.run())
            while True:
                await dirty.wait()
                dirty.clear()
                if pods.listed:
                    publish(merge(pods.objects.values(), slices.objects.values()))


def merge(pods: Iterable[Object], slices: Iterable[Object]) -> list[Endpoint]:
    """Endpoints from the objects of the API server. A pod without an address, finished, or of another component is
    none.
    """
    ready = _ready_by_uid(slices)
    endpoints = []
    for pod in pods:
        metadata, status = pod["metadata"], pod.get("status") or {}
        ip = status.get("podIP")
        if not ip or status.get("phase") in FINISHED or not _is_engine(metadata.get("labels") or {}):
            continue
        if not _sane(ip):
            log.warning("pod %s has the address %s, which no pod can have: ignored", metadata["name"], ip)
            continue
        uid = metadata["uid"]
        endpoints.append(
            Endpoint(metadata["name"], uid, ip, ready.get(uid), terminating="deletionTimestamp" in metadata)
        )
    return endpoints


def _is_engine(labels: dict[str, str]) -> bool:
    return labels.get(names.LABEL_COMPONENT, names.COMPONENT_ENGINE) == names.COMPONENT_ENGINE


def _sane(ip: str) -> bool:
    """Link-local addresses are where clouds keep their metadata servers."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    return not (address.is_link_local or address.is_multicast or address.is_unspecified)


def _ready_by_uid(slices: Iterable[Object]) -> dict[str, bool]:
    ready: dict[str, bool] = {}
    for piece in slices:
        for endpoint in piece.get("endpoints") or []:
            uid = (endpoint.get("targetRef") or {}).get("uid")
            if uid:
                ready[uid] = ready.get(uid, False) or (endpoint.get("conditions") or {}).get("ready") is not False
    return ready
