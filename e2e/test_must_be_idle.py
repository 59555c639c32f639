# SPDX-License-Identifier: Apache-2.0
"""While nothing happens to a service, the operator writes nothing: three minutes of the API server's audit log.

The renewal of the leader lease is not counted: it goes to the operator's own Lease object, not to a service, and
without it nobody would know who leads.
"""

import time

import pytest

from gearshift.api import names
from gscluster.audit import AuditLog, Write
from gscluster.cluster import Cluster
from gscluster.waiting import wait_for
from gsstack.chain import OPERATOR_ACCOUNT, Chain
from gsstack.install import OPERATOR_NAMESPACE
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

IDLE_SECONDS = 180
LEASE = ("leases", OPERATOR_NAMESPACE, "gearshift-operator")
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_no_write_while_nothing_happens(chain: Chain, space: Space) -> None:
    service = space.serve("chat", roles=ROLES, policy={"window": "5s"})
    service.wait_for(lambda status: status["lastDecision"]["reason"] == "Steady", "the policy to be content")
    log = AuditLog(chain.cluster.audit_log)
    log.mark()
    version = service.get()["metadata"]["resourceVersion"]
    deadline = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < deadline:
        assert _writes(log) == []
        time.sleep(5)  # the promise is about this time, nothing is waited for
    assert _writes(log) == []
    assert service.get()["metadata"]["resourceVersion"] == version
    assert len(_renewals(log)) > IDLE_SECONDS / 10, "the operator was there all the time, and the log has its writes"
    _check_a_write_is_seen(log, service, chain.cluster)


def _writes(log: AuditLog) -> list[Write]:
    return [write for write in log.writes(OPERATOR_ACCOUNT) if (write.resource, write.namespace, write.name) != LEASE]


def _renewals(log: AuditLog) -> list[Write]:
    return [write for write in log.writes(OPERATOR_ACCOUNT) if (write.resource, write.namespace, write.name) == LEASE]


def _check_a_write_is_seen(log: AuditLog, service: Service, cluster: Cluster) -> None:
    """The judge can say guilty: a change of the spec leads to a write of the status, and it is counted."""
    service.patch({"policy": {"window": "6s"}})
    wait_for(lambda: bool(_writes(log)), "a write in the audit log", timeout_seconds=30)
    assert {(write.resource, write.namespace) for write in _writes(log)} == {
        (f"{names.PLURAL}/status", service.namespace)
    }
