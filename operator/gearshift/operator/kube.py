# SPDX-License-Identifier: Apache-2.0
"""The only module of the operator that speaks to the Kubernetes API, and so the only one that writes to it.

Children and status go by server-side apply under one field manager. Pods are created, never applied: their names are
deterministic, so a second creation must collide instead of merging with what is there.
"""

import json
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient

from gearshift.api import names
from gearshift.operator import errors
from gearshift.operator.records import version_of
from gearshift.operator.resources import EVENTS, PODS, SELF_REVIEWS, SERVICES_OF_INFERENCE, Resource

Json = dict[str, Any]
_TIMEOUT_SECONDS: Final = 10.0
_PAGE: Final = 100  # objects; a pod is some 10 kB of JSON, and several times of that in memory
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing. ``version`` says how old the listing is: it shows nothing that is newer."""

    version: int
    items: list[Json]


class _NoDiscovery:
    """Stands in for the client's discovery: paths are known from `gearshift.operator.resources`."""

    def __init__(self, client: object, cache_file: object) -> None:
        del client, cache_file

    def __await__(self) -> Generator[None, None, "_NoDiscovery"]:
        yield
        return self


async def load_configuration(kubeconfig: str | None) -> Configuration:
    """How to reach the API server: a kubeconfig file, or else the pod's own account.

    Raises:
        errors.SettingsError: neither can be used.
    """
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            await load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        else:
            load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as problem:
        where = f"--kubeconfig {kubeconfig}" if kubeconfig else "no --kubeconfig, and not in a pod"
        raise errors.SettingsError(f"{where}: {problem}") from problem
    return configuration


async def connection(configuration: Configuration) -> Json:
    """The same access as keyword arguments of ``kopf.ConnectionInfo``."""
    authorization = await configuration.get_api_key_with_prefix("BearerToken")
    scheme, _, token = str(authorization or "").rpartition(" ")
    return {
        "server": configuration.host,
        "ca_path": configuration.ssl_ca_cert,
        "insecure": not configuration.verify_ssl,
        "scheme": scheme or ("Bearer" if token else None),
        "token": token or None,
        "certificate_path": configuration.cert_file,
        "private_key_path": configuration.key_file,
    }


class Kube:
    """Calls of the operator to the API server.

    ``may_write`` is asked before every write but those of the lease; it raises `errors.NotLeader` to refuse.
    """

    def __init__(self, client: DynamicClient, may_write: Callable[[], None]) -> None:
        self._client = client
        self._may_write = may_write

    @classmethod
    @asynccontextmanager
    async def connect(cls, configuration: Configuration, may_write: Callable[[], None]) -> AsyncIterator["Kube"]:
        """Open a connection pool; it is closed on exit."""
        async with ApiClient(configuration) as api:
            yield cls(await DynamicClient(api, discoverer=_NoDiscovery), may_write)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        """One object.

        Raises:
            errors.NotFound: there is none of that name.
        """
        return await self._call("get", resource, resource.path(namespace, name))

    async def pages(self, resource: Resource, namespace: str | None, labels: str | None = None) -> AsyncIterator[Page]:
        """All objects of a namespace, or of the cluster when it is None; at least one page.

        Raises:
            errors.KubeError: a page can't be had; what came before it is as it was when the first page was asked for.
        """
        path = resource.path(namespace)
        options: Json = {"label_selector": labels, "limit": _PAGE}
        while True:
            answer = await self._call("get", resource, path, **options)
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            yield Page(version_of(answer), [kind | item for item in answer["items"]])
            options["_continue"] = answer["metadata"].get("continue")
            if not options["_continue"]:
                return

    async def create(self, resource: Resource, manifest: Json, *, dry_run: bool = False) -> Json:
        """Create an object, or only ask whether it could be.

        Raises:
            errors.AlreadyExists: the name is taken.
            errors.Invalid: the API server says what is wrong with it.
        """
        self._may_write()
        path = resource.path(manifest["metadata"].get("namespace"))
        extra = {"dry_run": "All"} if dry_run else {}
        return await self._call("post", resource, path, manifest, field_manager=names.FIELD_MANAGER, **extra)

    async def apply(self, resource: Resource, manifest: Json, subresource: str | None = None) -> Json:
        """Server-side apply as our field manager; takes over fields that others changed on our children."""
        self._may_write()
        metadata = manifest["metadata"]
        path = resource.path(metadata["namespace"], metadata["name"], subresource)
        options = {"content_type": _APPLY, "field_manager": names.FIELD_MANAGER, "force_conflicts": "true"}
        return await self._call("patch", resource, path, manifest, **options)

    async def apply_status(self, namespace: str, name: str, uid: str, status: Json) -> Json:
        """Write the status of an InferenceService; a namesake with another uid is left alone.

        Raises:
            errors.Conflict: the object is not the one of that uid any more.
        """
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "status": status,
        }
        return await self.apply(SERVICES_OF_INFERENCE, manifest, "status")

    async def delete_pod(self, namespace: str, name: str, uid: str, *, force: bool) -> Json:
        """Delete one pod and no namesake of it.

        Raises:
            errors.NotFound: it is gone.
            errors.Conflict: a pod with another uid has that name.
        """
        self._may_write()
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if force:
            body["gracePeriodSeconds"] = 0
        return await self._call("delete", PODS, PODS.path(namespace, name), body)

    async def create_event(self, manifest: Json) -> None:
        """Record an event."""
        await self.create(EVENTS, manifest)

    async def write_lease(self, resource: Resource, manifest: Json) -> Json:
        """Create the lease, or replace the very version that ``manifest`` was read as.

        Raises:
            errors.AlreadyExists, errors.Conflict: another process was faster.
        """
        metadata = manifest["metadata"]
        options = {"field_manager": names.FIELD_MANAGER, "_request_timeout": 4.0}
        if "resourceVersion" in metadata:
            path = resource.path(metadata["namespace"], metadata["name"])
            return await self._call("put", resource, path, manifest, **options)
        return await self._call("post", resource, resource.path(metadata["namespace"]), manifest, **options)

    async def whoami(self) -> str:
        """User name by which the API server knows this process."""
        body = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
        answer = await self._call("post", SELF_REVIEWS, SELF_REVIEWS.path(), body)
        return str(answer["status"]["userInfo"]["username"])

    async def _call(self, method: str, resource: Resource, path: str, body: Json | None = None, **options: Any) -> Json:
        what = f"{method.upper()} {resource.kind} {path}"
        options.setdefault("_request_timeout", _TIMEOUT_SECONDS)
        try:
            response = await self._client.request(method, path, body=body, serialize=False, **options)
            answer: Json = await response.json()
        except ApiException as problem:
            raise _translated(what, problem) from problem
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as problem:  # ValueError: no JSON
            raise errors.Unavailable(what, repr(problem)) from problem
        return answer


def _translated(what: str, problem: ApiException) -> errors.KubeError:
    status = int(problem.status or 0)
    reason, message = _status_of(problem)
    kinds: dict[int, type[errors.KubeError]] = {
        400: errors.Invalid, 401: errors.Forbidden, 403: errors.Forbidden, 404: errors.NotFound, 409: errors.Conflict,
        422: errors.Invalid,
    }  # fmt: skip
    kind = errors.AlreadyExists if reason == "AlreadyExists" else kinds.get(status, errors.Unavailable)
    return kind(what, message, status)


def _status_of(problem: ApiException) -> tuple[str, str]:
    """Reason and message of the Status object that the API server answered with."""
    try:
        body = json.loads(problem.body or "")
        return str(body.get("reason", "")), str(body.get("message", problem.reason))
    except (ValueError, AttributeError):
        return "", str(problem.reason)


def namespace_of_pod() -> str | None:
    """Namespace that this process runs in when it is in a pod."""
    file = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    return file.read_text().strip() if file.exists() else None
