# SPDX-License-Identifier: Apache-2.0
"""Five minutes without operator and API server under load: no request fails, and afterwards everything is as before."""

import time

import pytest

from gscluster import faults
from gsstack.chain import Chain
from gsstack.load import Load
from gsstack.space import Space

pytestmark = pytest.mark.e2e

OUTAGE_SECONDS = 300
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]


def test_requests_are_served_without_a_control_plane(chain: Chain, space: Space) -> None:
    service = space.serve("chat", roles=ROLES)
    pods, url = service.pods(), service.url()
    with Load(url, requests_per_second=4, output_tokens=16) as load:
        chain.stop_operator()
        with faults.control_plane_down(chain.cluster):
            before = len(load.outcomes)
            deadline = time.monotonic() + OUTAGE_SECONDS
            while time.monotonic() < deadline:
                assert load.failures() == []
                time.sleep(5)  # the promise is about this time, nothing is waited for
            served = len(load.outcomes) - before
        chain.cluster.wait_until_usable()
        chain.start_operator()
        service.wait_settled(180)
        load.wait_for_answers(8)
    assert load.failures() == []
    assert served > 0.9 * 4 * OUTAGE_SECONDS
    assert {len(texts) for texts in load.digests().values()} == {1}
    assert [_identity(pod) for pod in service.pods()] == [_identity(pod) for pod in pods]


def _identity(pod: dict[str, dict[str, object]]) -> tuple[object, object]:
    """Uid and the number of restarts of each container: it is the very pod, and nothing in it has ended."""
    statuses = pod["status"]["containerStatuses"]
    assert isinstance(statuses, list)
    return pod["metadata"]["uid"], [each["restartCount"] for each in statuses]
