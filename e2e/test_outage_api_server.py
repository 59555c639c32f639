# SPDX-License-Identifier: Apache-2.0
"""Ten minutes without an API server under load, the operator alive: no request fails, and work goes on afterwards."""

import time

import pytest

from gscluster import faults
from gscluster.audit import AuditLog
from gscluster.waiting import wait_for
from gsstack.chain import Chain
from gsstack.load import Load
from gsstack.space import Space

pytestmark = pytest.mark.e2e

OUTAGE_SECONDS = 600
KUBELET_SECONDS = 180
"""Kubelets ask an API server that was away for long every 30 to 60 s only."""
QUIET_SECONDS = 20
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_work_goes_on_after_ten_minutes_without_an_api_server(chain: Chain, space: Space) -> None:
    service = space.serve("chat", roles=ROLES, policy={"window": "5s"})
    operator, pods, url = chain.operator_pods(), service.pods(), service.url()
    with Load(url, requests_per_second=4, output_tokens=16) as load:
        with faults.control_plane_down(chain.cluster):
            deadline = time.monotonic() + OUTAGE_SECONDS
            while time.monotonic() < deadline:
                assert load.failures() == []
                time.sleep(5)  # the promise is about this time, nothing is waited for
        chain.cluster.wait_until_usable()
        service.patch({"roles": [{"name": "Prefill", "replicas": 2}, {"name": "Decode", "replicas": 1}]})
        service.wait_for(lambda status: status["readyReplicas"] == 3, "the third pod to serve", KUBELET_SECONDS)
        service.wait_settled(180)
        load.wait_for_answers(8)
    assert load.failures() == []
    assert chain.operator_pods() == operator
    assert {pod["metadata"]["uid"] for pod in pods} < {pod["metadata"]["uid"] for pod in service.pods()}
    _wait_until_writes_stop(chain)


def _wait_until_writes_stop(chain: Chain) -> None:
    log = AuditLog(chain.cluster.audit_log)

    def quiet() -> bool:
        log.mark()
        time.sleep(QUIET_SECONDS)  # the claim is about this time
        return chain.writes(log) == []

    wait_for(quiet, f"{QUIET_SECONDS} s without a write by the operator", timeout_seconds=180)
