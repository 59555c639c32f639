# SPDX-License-Identifier: Apache-2.0
"""A change of the spec replaces pods one by one under load: the next one goes when its predecessor serves, and no
request fails.
"""

from datetime import datetime
from typing import Any

import pytest

from gsstack.load import Load
from gsstack.space import Space

pytestmark = pytest.mark.e2e

SLOW = ["--profile=llama-3-70b-fp8-h200", "--startup=1s"]
TEMPLATE = {"metadata": {"annotations": {"example.com/note": "new"}}}


def test_pods_are_replaced_one_by_one(space: Space) -> None:
    service = space.serve("chat", args=SLOW, roles=[{"name": "Unified", "replicas": 2}])
    before = service.uids()
    with Load(service.url(), requests_per_second=4, output_tokens=64) as load:
        service.patch({"pod": {"template": TEMPLATE}})
        service.wait_for(lambda status: status["observedGeneration"] == 2, "the change to be seen")
        service.wait_settled(180)
        load.wait_for_answers(8)
    assert load.failures() == []
    after = service.uids()
    assert len(after) == len(before)
    assert not set(after.values()) & set(before.values())
    first, second = sorted(service.pods(), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    assert _ready_at(first) <= _time(second["metadata"]["creationTimestamp"])
    assert [pod["metadata"]["annotations"]["example.com/note"] for pod in (first, second)] == ["new", "new"]


def _ready_at(pod: dict[str, Any]) -> datetime:
    (ready,) = (each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"
    return _time(ready["lastTransitionTime"])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
