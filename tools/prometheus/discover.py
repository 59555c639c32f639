# SPDX-License-Identifier: Apache-2.0
"""Kubernetes discovery for a Prometheus that was built without it, such as Debian's.

    python3 -m tools.prometheus.discover --api-server https://HOST:6443 --token-file FILE --ca-file FILE --targets FILE

Lists Gearshift's pods and writes them for Prometheus' file discovery, with the labels that Prometheus' own Kubernetes
discovery gives, so that one set of relabeling rules serves both. The file changes only when the targets do. While the
API server can't be asked the file stays as it is, and Prometheus goes on scraping what it knows.
"""

import argparse
import json
import re
import signal
import ssl
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Final

SELECTOR: Final = "app.kubernetes.io/name=gearshift"
_NOT_A_LABEL: Final = re.compile(r"[^a-zA-Z0-9_]")
_META: Final = "__meta_kubernetes_"
_TIMEOUT_SECONDS: Final = 10.0


def targets(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Groups of file discovery, one a container port of every pod that has an address, in a fixed order."""
    groups = [
        {"targets": [f"{_host(pod['status']['podIP'])}:{port['containerPort']}"], "labels": _labels(pod, *where, port)}
        for pod in pods
        if pod["status"].get("podIP")
        for where in _containers(pod)
        for port in where[0].get("ports", [])
    ]
    return sorted(groups, key=lambda group: json.dumps(group, sort_keys=True))


def _containers(pod: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    spec = pod["spec"]
    return [(each, False) for each in spec["containers"]] + [(each, True) for each in spec.get("initContainers", [])]


def _labels(pod: dict[str, Any], container: dict[str, Any], init: bool, port: dict[str, Any]) -> dict[str, str]:
    metadata = pod["metadata"]
    plain = {
        "namespace": metadata["namespace"],
        "pod_name": metadata["name"],
        "pod_uid": metadata["uid"],
        "pod_ip": pod["status"]["podIP"],
        "pod_node_name": pod["spec"].get("nodeName", ""),
        "pod_phase": pod["status"].get("phase", ""),
        "pod_container_name": container["name"],
        "pod_container_init": "true" if init else "false",
        "pod_container_port_name": port.get("name", ""),
        "pod_container_port_number": str(port["containerPort"]),
        "pod_container_port_protocol": port.get("protocol", "TCP"),
    }
    named = {f"pod_label_{_NOT_A_LABEL.sub('_', key)}": value for key, value in metadata.get("labels", {}).items()}
    return {f"{_META}{key}": value for key, value in {**plain, **named}.items()}


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class Lister:
    """Lists pods; reads the token anew each time, because it is replaced before it expires."""

    def __init__(self, api_server: str, token_file: Path | None, ca_file: Path | None) -> None:
        query = urllib.parse.urlencode({"labelSelector": SELECTOR, "resourceVersion": "0"})
        self._url = f"{api_server.rstrip('/')}/api/v1/pods?{query}"
        self._token_file = token_file
        self._tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))

    def pods(self) -> list[dict[str, Any]]:
        """Pods of all namespaces.

        Raises:
            OSError: the API server can't be asked, or the token file can't be read.
            ValueError: its answer is not a list.
        """
        request = urllib.request.Request(self._url, headers={"Accept": "application/json"})
        if self._token_file is not None:
            request.add_header("Authorization", f"Bearer {self._token_file.read_text().strip()}")
        tls = self._tls if self._url.startswith("https:") else None
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=tls) as answer:
            body = json.load(answer)
        items: Any = body.get("items") if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise ValueError("the answer of the API server is not a list of pods")
        return items


def write_if_changed(file: Path, groups: list[dict[str, Any]]) -> bool:
    """Replace ``file`` in one step when its content would differ; says whether it did."""
    text = json.dumps(groups, indent=1, sort_keys=True)
    if file.exists() and file.read_text() == text:
        return False
    beside = file.with_name(file.name + ".new")
    beside.write_text(text)
    beside.replace(file)
    return True


def _run(lister: Lister, file: Path, interval_seconds: float, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            groups = targets(lister.pods())
            if write_if_changed(file, groups):
                sys.stderr.write(f"{len(groups)} targets in {file}\n")
        except (OSError, ValueError) as problem:
            sys.stderr.write(f"targets stay as they are: {problem}\n")
        stop.wait(interval_seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write Gearshift's pods for Prometheus' file discovery.")
    parser.add_argument("--api-server", required=True, metavar="URL")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="bearer token of gearshift-prometheus")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="certificate authority of the API server")
    parser.add_argument("--targets", type=Path, required=True, metavar="FILE", help="file to write")
    parser.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="time between two lists: 2")
    return parser


def main() -> int:
    """Entry point: runs until SIGTERM or SIGINT."""
    args = _parser().parse_args()
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    _run(Lister(args.api_server, args.token_file, args.ca_file), args.targets, args.interval, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
