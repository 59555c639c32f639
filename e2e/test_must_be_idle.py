# SPDX-License-Identifier: Apache-2.0
"""While nothing happens to a service, the operator writes nothing: three minutes of the API server's audit log.

The renewal of the leader lease is not counted: it goes to the operator's own Lease object, not to a service, and
without it nobody would know who leads.
"""

import time

import pytest

from gearshift.api import names
from gscluster.audit import AuditLog
from gscluster.waiting import wait_for
from gsstack.chain import Chain
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

IDLE_SECONDS = 180
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_no_write_while_nothing_happens(chain: Chain, space: Space) -> None:
    service = space.serve("chat", roles=ROLES, policy={"window": "5s"})
    service.wait_for(lambda status: status["lastDecision"]["reason"] == "Steady", "the policy to be content")
    log = AuditLog(chain.cluster.audit_log)
    log.mark()
    version = service.get()["metadata"]["resourceVersion"]
    deadline = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < deadline:
        assert chain.writes(log) == []
        time.sleep(5)  # the promise is about this time, nothing is waited for
    assert chain.writes(log) == []
    assert service.get()["metadata"]["resourceVersion"] == version
    assert len(chain.renewals(log)) > IDLE_SECONDS / 10, "the operator was there, and the log has its writes"
    _check_a_write_is_seen(log, service, chain)


def _check_a_write_is_seen(log: AuditLog, service: Service, chain: Chain) -> None:
    """The judge can say guilty: a change of the spec leads to a write of the status, and it is counted."""
    service.patch({"policy": {"window": "6s"}})
    wait_for(lambda: bool(chain.writes(log)), "a write in the audit log", timeout_seconds=180)
    assert {(write.resource, write.namespace) for write in chain.writes(log)} == {
        (f"{names.PLURAL}/status", service.namespace)
    }
