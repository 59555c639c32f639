# SPDX-License-Identifier: Apache-2.0
"""A pod that dies under load costs the answers that it had begun, nothing else, and is replaced.

Promised: until the first byte of an answer the router tries another pod, so no other request fails. An answer that had
begun can't be taken over; it breaks in a way that every client sees.
"""

import pytest

from gearshift.sim.load import Outcome
from gsstack.chain import Chain, kill_processes
from gsstack.load import Load, words
from gsstack.space import Space

pytestmark = pytest.mark.e2e

BREAKS = {"reset", "truncated", "error-event"}


def test_only_answers_that_the_pod_had_begun_break(chain: Chain, space: Space) -> None:
    service = space.serve("chat", roles=[{"name": "Unified", "replicas": 2}])
    before = service.uids()
    with Load(service.url(), requests_per_second=8, output_tokens=64) as load:
        load.wait_for_answers(16)
        killed_at = load.now()
        kill_processes(chain.cluster, before["chat-0"], "")
        service.kubectl("delete", "pod", "chat-0", "-n", space.name, "--force", "--grace-period=0")
        service.wait_for(lambda status: len(_serving(status)) == 1, "the loss in status")
        service.wait_settled(180)
        load.wait_for_answers(16)
    after = service.uids()
    assert set(after.values()) & set(before.values()) == {before["chat-1"]}
    assert len(after) == len(before)
    assert [words(each) for each in load.outcomes if each.failure and not _had_begun(each, killed_at)] == []
    assert {len(texts) for texts in load.digests().values()} == {1}


def _serving(status: dict[str, list[dict[str, object]]]) -> list[object]:
    return [pod["name"] for pod in status.get("pods", []) if pod["ready"]]


def _had_begun(outcome: Outcome, killed_at: float) -> bool:
    """Its first token was there when the pod was killed; the clocks of test and load differ by less than half a
    second.
    """
    first = outcome.sent_at + (outcome.ttft_seconds or float("inf"))
    return outcome.failure in BREAKS and first < killed_at + 0.5
