# SPDX-License-Identifier: Apache-2.0
"""Prometheus' configuration for outside a cluster, and discovery without Kubernetes support."""

from pathlib import Path
from typing import Any

import pytest

from tools.prometheus import render
from tools.prometheus.discover import targets, write_if_changed


def pod(**changes: Any) -> dict[str, Any]:
    """A pod with an engine and a native sidecar."""
    body: dict[str, Any] = {
        "metadata": {"name": "chat-0", "namespace": "prod", "uid": "u", "labels": {"gearshift.dev/service": "chat"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "engine", "ports": [{"name": "engine", "containerPort": 8000}]}],
            "initContainers": [
                {"name": "sidecar", "ports": [{"name": "metrics", "containerPort": 9401, "protocol": "TCP"}]}
            ],
        },
        "status": {"podIP": "10.0.0.7", "phase": "Running"},
    }
    return {**body, **changes}


def test_every_port_of_every_container_is_a_target() -> None:
    """With the labels of Prometheus' own discovery."""
    found = targets([pod()])
    assert [group["targets"] for group in found] == [["10.0.0.7:8000"], ["10.0.0.7:9401"]]
    assert found[1]["labels"] == {
        "__meta_kubernetes_namespace": "prod",
        "__meta_kubernetes_pod_name": "chat-0",
        "__meta_kubernetes_pod_uid": "u",
        "__meta_kubernetes_pod_ip": "10.0.0.7",
        "__meta_kubernetes_pod_node_name": "n1",
        "__meta_kubernetes_pod_phase": "Running",
        "__meta_kubernetes_pod_container_name": "sidecar",
        "__meta_kubernetes_pod_container_init": "true",
        "__meta_kubernetes_pod_container_port_name": "metrics",
        "__meta_kubernetes_pod_container_port_number": "9401",
        "__meta_kubernetes_pod_container_port_protocol": "TCP",
        "__meta_kubernetes_pod_label_gearshift_dev_service": "chat",
    }


def test_pods_without_an_address_are_none_and_ipv6_is_bracketed() -> None:
    """A pod that is not placed yet has nothing to scrape."""
    assert targets([pod(status={})]) == []
    six = targets([pod(status={"podIP": "fd00::7"})])
    assert six[0]["targets"] == ["[fd00::7]:8000"]


def test_the_order_of_pods_does_not_change_the_file(tmp_path: Path) -> None:
    """It is written when the targets change, and only then."""
    other = pod(status={"podIP": "10.0.0.8", "phase": "Running"})
    file = tmp_path / "targets.json"
    assert write_if_changed(file, targets([pod(), other]))
    assert not write_if_changed(file, targets([other, pod()]))
    assert write_if_changed(file, [])
    assert file.read_text() == "[]"


def test_from_outside_every_job_asks_the_given_api_server(tmp_path: Path) -> None:
    """With token and authority, and the selectors that it has inside."""
    config = render.from_cluster(render.template(), "https://host:6443", tmp_path / "token", tmp_path / "ca.crt")
    found = [job["kubernetes_sd_configs"] for job in config["scrape_configs"]]
    assert len(found) == 4
    assert (
        found
        == [
            [
                {
                    "api_server": "https://host:6443",
                    "authorization": {"type": "Bearer", "credentials_file": str(tmp_path / "token")},
                    "tls_config": {"ca_file": str(tmp_path / "ca.crt")},
                    "role": "pod",
                    "selectors": [{"role": "pod", "label": "app.kubernetes.io/name=gearshift"}],
                }
            ]
        ]
        * 4
    )


def test_file_discovery_replaces_kubernetes_and_nothing_else(tmp_path: Path) -> None:
    """Relabelling stays as it is."""
    inside = render.template()["scrape_configs"]
    config = render.from_file(render.template(), tmp_path / "t.json")
    for before, after in zip(inside, config["scrape_configs"], strict=True):
        assert after.pop("file_sd_configs") == [{"files": [str(tmp_path / "t.json")]}]
        before.pop("kubernetes_sd_configs")
        assert after == before


@pytest.mark.parametrize(("seconds", "timeout"), [(1, "1s"), (10, "10s"), (60, "10s")])
def test_the_scrape_timeout_never_exceeds_the_interval(seconds: int, timeout: str) -> None:
    """Prometheus refuses a configuration in which it does."""
    config = render.with_interval(render.template(), seconds)
    assert config["global"] == {
        "scrape_interval": f"{seconds}s",
        "scrape_timeout": timeout,
        "evaluation_interval": "15s",
    }
