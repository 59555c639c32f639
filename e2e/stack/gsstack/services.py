# SPDX-License-Identifier: Apache-2.0
"""What a user does with an ``InferenceService`` by ``kubectl``: apply, wait, look, patch, delete."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from gearshift.api import names
from gscluster.kubectl import Kubectl
from gscluster.waiting import wait_for

RESOURCE = f"{names.PLURAL}.{names.GROUP}"
Status = dict[str, Any]


class Service:
    """An ``InferenceService`` by namespace and name."""

    def __init__(self, kubectl: Kubectl, namespace: str, name: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace
        self.name = name

    def _words(self, verb: str, *words: str) -> list[str]:
        return [verb, "--namespace", self.namespace, *words]

    def get(self) -> dict[str, Any]:
        """The object as the API server has it."""
        found: dict[str, Any] = self.kubectl.json(*self._words("get", RESOURCE, self.name))
        return found

    def status(self) -> Status:
        """Its status; empty before the operator has seen it."""
        return dict(self.get().get("status", {}))

    def patch(self, spec: dict[str, Any]) -> None:
        """Merge ``spec`` into the spec."""
        patch = json.dumps({"spec": spec})
        self.kubectl(*self._words("patch", RESOURCE, self.name, "--type=merge", "--patch", patch))

    def wait_ready(self, timeout_seconds: int) -> None:
        """Return when condition Ready is True for the present generation."""
        words = ["wait", f"{RESOURCE}/{self.name}", "--for=condition=Ready", f"--timeout={timeout_seconds}s"]
        self.kubectl(*self._words(*words), timeout_seconds=timeout_seconds + 10)

    def wait_for(self, condition: Callable[[Status], bool], what: str, timeout_seconds: float = 180) -> Status:
        """Return the first status for which ``condition`` holds."""
        last: list[Status] = [{}]

        def holds() -> bool:
            last[0] = self.status()
            return condition(last[0])

        wait_for(holds, f"{self.namespace}/{self.name}: {what}", timeout_seconds=timeout_seconds, interval_seconds=0.2)
        return last[0]

    def wait_field(self, path: str, value: str, timeout_seconds: int = 180) -> None:
        """Return when the field at a JSONPath has a value; it is watched, not polled."""
        words = ["wait", f"{RESOURCE}/{self.name}", f"--for=jsonpath={path}={value}", f"--timeout={timeout_seconds}s"]
        self.kubectl(*self._words(*words), timeout_seconds=timeout_seconds + 10)

    def annotate(self, annotation: str) -> None:
        """Set an annotation, given as ``name=value``, or remove one, given as ``name-``."""
        self.kubectl(*self._words("annotate", RESOURCE, self.name, "--overwrite", annotation))

    def wait_settled(self, timeout_seconds: float = 180) -> Status:
        """Return when every pod that the spec asks for serves, and nothing is being made, removed or changed."""
        wanted = {"Ready": "True", "EnginesReady": "True", "Reconciling": "False", "Shifting": "False"}

        def settled() -> bool:
            found = self.get()
            conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
            told = {kind: conditions.get(kind, {}).get("status") for kind in wanted}
            generations = {conditions.get(kind, {}).get("observedGeneration") for kind in wanted}
            return told == wanted and generations == {found["metadata"]["generation"]}

        wait_for(settled, f"{self.namespace}/{self.name} to settle", timeout_seconds=timeout_seconds)
        return self.status()

    def uids(self) -> dict[str, str]:
        """Pod -> uid, as Kubernetes has them."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition; empty when it is not set."""
        return next((c for c in self.status().get("conditions", []) if c["type"] == kind), {})

    def pods(self) -> list[dict[str, Any]]:
        """Its engine pods as Kubernetes has them, by name."""
        selector = f"{names.LABEL_SERVICE}={self.name},{names.LABEL_COMPONENT}={names.COMPONENT_ENGINE}"
        found = self.kubectl.json(*self._words("get", "pods", "--selector", selector))["items"]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    def roles(self) -> dict[str, str]:
        """Pod -> role, as status says."""
        return {pod["name"]: pod["role"] for pod in self.status().get("pods", [])}

    def layouts(self) -> dict[str, str]:
        """Pod -> layout, as status says."""
        return {pod["name"]: pod["layout"] for pod in self.status().get("pods", [])}

    def url(self) -> str:
        """Address of the router's Service, reachable from this machine while the cluster runs."""
        found = self.kubectl.json(*self._words("get", "service", names.router_name(self.name)))
        return f"http://{found['spec']['clusterIP']}:{found['spec']['ports'][0]['port']}"

    def wait_reachable(self, timeout_seconds: float = 180) -> None:
        """Return when its router answers here: kube-proxy hears of a ready pod a moment after everyone else."""
        url = f"{self.url()}/health"
        wait_for(lambda: _answers(url), f"{url} to answer", timeout_seconds=timeout_seconds)

    def delete(self, timeout_seconds: int = 120) -> None:
        """Delete it and return when the object and its pods are gone."""
        words = ["delete", RESOURCE, self.name, "--cascade=foreground", f"--timeout={timeout_seconds}s"]
        self.kubectl(*self._words(*words), timeout_seconds=timeout_seconds + 10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
