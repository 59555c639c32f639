# SPDX-License-Identifier: Apache-2.0
"""The only module of the command line that speaks to the Kubernetes API.

An order (``spec.override``) goes by server-side apply under this command line's own field manager, so that the API
server knows whose it is: GitOps tools that do not state the field leave it alone, and one that does is a conflict.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes.client import ApiClient, ApiException, Configuration, CustomObjectsApi
from kubernetes.config import ConfigException, list_kube_config_contexts, load_incluster_config, load_kube_config

from gearshift.api import names
from gearshift.cli.errors import ConflictError, NotFoundError, RefusedError, UnreachableError, UsageError

Json = dict[str, Any]
FIELD_MANAGER: Final = "kubectl-gearshift"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TIMEOUT_SECONDS: Final = 15.0
_LIST_SECONDS: Final = 60.0
_RESOURCE: Final = {"group": names.GROUP, "version": names.VERSION, "plural": names.PLURAL}
_NOT_INSTALLED: Final = (
    f"the cluster knows no {names.PLURAL}.{names.GROUP}; install Gearshift: kubectl apply --server-side -f crds/"
)
# A human sees a lost connection and tries again; an API server that asks for patience (429) has done nothing yet.
_RETRIES: Final = urllib3.Retry(
    connect=0, read=0, redirect=0, other=0, status=10, status_forcelist={429}, allowed_methods=None,
    backoff_factor=0.2, backoff_max=2.0, raise_on_status=False,
)  # fmt: skip


class Kube:
    """Calls of the command line. ``namespace`` is that of the context or the pod, ``default`` where it names none."""

    def __init__(self, api: CustomObjectsApi, server: str, namespace: str) -> None:
        self._api = api
        self._server = server
        self.namespace = namespace

    @classmethod
    @contextmanager
    def connect(cls, kubeconfig: str | None, context: str | None) -> Iterator["Kube"]:
        """Open a connection as kubectl would: the file, or else ``KUBECONFIG``, ``~/.kube/config``, the pod's account.

        Raises:
            UsageError: none of them can be used.
        """
        configuration, namespace = _configuration(kubeconfig, context)
        configuration.retries = _RETRIES
        if not configuration.verify_ssl:
            urllib3.disable_warnings()  # the kubeconfig asks for it; kubectl does not warn either
        with ApiClient(configuration) as client:
            try:
                yield cls(CustomObjectsApi(client), str(configuration.host), namespace)
            finally:
                client.rest_client.pool_manager.clear()

    def get(self, namespace: str, name: str) -> Json:
        """One InferenceService.

        Raises:
            NotFoundError: there is none of that name.
        """
        return self._call("get_namespaced_custom_object", namespace, name)

    def list(self, namespace: str | None) -> list[Json]:
        """All InferenceServices of a namespace, or of the cluster when it is None."""
        options: Json = {"_request_timeout": _LIST_SECONDS}
        if namespace is None:
            answer = self._call("list_cluster_custom_object", None, None, **options)
        else:
            answer = self._call("list_namespaced_custom_object", namespace, None, **options)
        return [{"apiVersion": names.API_VERSION, "kind": names.KIND, **item} for item in answer["items"]]

    def annotate(self, body: Json, changes: Mapping[str, str], *, dry_run: bool) -> Json:
        """Set annotations of the very object that ``body`` is, and of no namesake."""
        metadata = body["metadata"]
        patch = {"metadata": {"uid": metadata["uid"], "annotations": dict(changes)}}
        return self._write(metadata, patch, "application/merge-patch+json", dry_run=dry_run)

    def apply_override(self, body: Json, override: Json, *, force: bool, dry_run: bool) -> Json:
        """Order what ``override`` says of the very object that ``body`` is.

        Raises:
            ConflictError: another field manager holds ``spec.override``, and ``force`` is not set.
        """
        metadata = body["metadata"]
        identity = {key: metadata[key] for key in ("name", "namespace", "uid")}
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": identity,
            "spec": {"override": override},
        }
        return self._write(metadata, manifest, "application/apply-patch+yaml", dry_run=dry_run, force=force)

    def remove(self, body: Json, pointers: Mapping[str, Any], *, dry_run: bool) -> Json:
        """Remove fields in one write. ``pointers`` maps their JSON pointers to the values that they must still have.

        Raises:
            ConflictError: one of them has changed meanwhile.
        """
        metadata = body["metadata"]
        patch = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
        for pointer, value in pointers.items():
            patch.append({"op": "test", "path": pointer, "value": value})
            patch.append({"op": "remove", "path": pointer})
        return self._write(metadata, patch, "application/json-patch+json", dry_run=dry_run)

    def _write(self, metadata: Json, patch: Any, content_type: str, *, dry_run: bool, **options: Any) -> Json:
        if dry_run:
            options["dry_run"] = "All"
        return self._call(
            "patch_namespaced_custom_object", metadata["namespace"], metadata["name"],
            body=patch, field_manager=FIELD_MANAGER, _content_type=content_type, **options,
        )  # fmt: skip

    def _call(self, method: str, namespace: str | None, name: str | None, **options: Any) -> Json:
        where = {key: value for key, value in (("namespace", namespace), ("name", name)) if value is not None}
        options.setdefault("_request_timeout", _TIMEOUT_SECONDS)
        try:
            answer: Json = getattr(self._api, method)(**_RESOURCE, **where, **options)
        except ApiException as problem:
            raise _translated(problem, _what(namespace, name)) from problem
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            reason = getattr(problem, "reason", None) or problem
            raise UnreachableError(f"{self._server} can't be reached: {reason}") from problem
        return answer


def owners(body: Json) -> tuple[str, ...]:
    """Names of the field managers other than this command line that hold ``spec.override``."""
    found = set()
    for entry in body["metadata"].get("managedFields", []):
        ours = (entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply")
        if not ours and "f:override" in entry.get("fieldsV1", {}).get("f:spec", {}):
            found.add(str(entry.get("manager", "unknown")))
    return tuple(sorted(found))


def _configuration(kubeconfig: str | None, context: str | None) -> tuple[Configuration, str]:
    """How to reach the API server, and the namespace to look in."""
    configuration = Configuration()
    try:
        active = _context(kubeconfig, context)
        if active is None:
            load_incluster_config(client_configuration=configuration)
            return configuration, _NAMESPACE_FILE.read_text().strip()
        load_kube_config(kubeconfig, active["name"], client_configuration=configuration)
    except (ConfigException, OSError, yaml.YAMLError, TypeError, KeyError) as problem:
        where = f"--kubeconfig {kubeconfig}" if kubeconfig else "the kubeconfig of KUBECONFIG or ~/.kube/config"
        raise UsageError(f"{where} can't be used: {' '.join(str(problem).split())}") from problem
    return configuration, str(active["context"].get("namespace") or "default")


def _context(kubeconfig: str | None, context: str | None) -> Json | None:
    """The chosen context of the kubeconfig; None where there is no kubeconfig and a pod's account may do."""
    try:
        contexts, active = list_kube_config_contexts(kubeconfig)
    except ConfigException:
        if kubeconfig is None and context is None and _in_pod():
            return None
        raise
    if context is None:
        return dict(active)
    found = next((dict(each) for each in contexts if each["name"] == context), None)
    if found is None:
        known = ", ".join(str(each["name"]) for each in contexts)
        raise UsageError(f"--context: {context!r} is not in the kubeconfig; known: {known}")
    return found


def _in_pod() -> bool:
    try:
        load_incluster_config(client_configuration=Configuration())
    except ConfigException:
        return False
    return True


def _what(namespace: str | None, name: str | None) -> str:
    if name is not None:
        return f"inferenceservice {namespace}/{name}"
    return f"{names.PLURAL} of {'all namespaces' if namespace is None else f'namespace {namespace}'}"


def _translated(problem: ApiException, what: str) -> RefusedError:
    """The API server's refusal in its own words, after the name of the object."""
    answer = _answer(problem)
    details = answer.get("details") or {}
    message = str(answer.get("message") or problem.reason)
    if problem.status == 404:
        return NotFoundError(f"{what} not found" if details.get("name") else _NOT_INSTALLED)
    causes = details.get("causes") or []
    if problem.status == 409 and causes:
        managers = [str(cause.get("message", "")).split('"') for cause in causes]
        return ConflictError(f"{what}: {message}", tuple(sorted({words[1] for words in managers if len(words) > 1})))
    return (ConflictError if problem.status == 409 else RefusedError)(f"{what}: {message}")


def _answer(problem: ApiException) -> Json:
    try:
        answer = json.loads(problem.body or "")
    except (ValueError, TypeError):
        return {}
    return answer if isinstance(answer, dict) else {}
