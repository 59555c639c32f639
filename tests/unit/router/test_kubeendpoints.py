# SPDX-License-Identifier: Apache-2.0
"""Endpoints from the objects of the API server."""

from typing import Any

import pytest

from gearshift.api import names
from gearshift.router.endpoints import Endpoint
from gearshift.router.kubeendpoints import merge


def pod(name: str = "a", ip: str | None = "10.0.0.1", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "status": {"podIP": ip, "phase": phase}}


def piece(*endpoints: tuple[str, bool | None]) -> dict[str, Any]:
    return {
        "endpoints": [
            {"targetRef": {"uid": f"uid-{name}"}, "conditions": {"ready": ready}} for name, ready in endpoints
        ]
    }


def test_readiness_comes_from_the_slices() -> None:
    slices = [piece(("a", True), ("b", False)), piece(("c", None)), {"endpoints": None}]
    merged = merge([pod(name) for name in "abcd"], slices)
    assert [(endpoint.name, endpoint.ready) for endpoint in merged] == [
        ("a", True),
        ("b", False),
        ("c", True),
        ("d", None),
    ]


def test_a_deletion_that_has_begun_shows() -> None:
    assert merge([pod(deletionTimestamp="2026-01-01T00:00:00Z")], []) == [
        Endpoint("a", "uid-a", "10.0.0.1", None, True)
    ]


@pytest.mark.parametrize(
    "thing",
    [
        pod(ip=None),
        pod(phase="Succeeded"),
        pod(phase="Failed"),
        pod(ip="169.254.169.254"),
        pod(ip="fe80::1"),
        pod(ip="not an address"),
        pod(labels={names.LABEL_COMPONENT: names.COMPONENT_ROUTER}),
    ],
)
def test_what_is_no_endpoint(thing: dict[str, Any]) -> None:
    assert merge([thing], []) == []


def test_an_engine_pod_is_an_endpoint() -> None:
    assert merge([pod(labels={names.LABEL_COMPONENT: names.COMPONENT_ENGINE})], [])
