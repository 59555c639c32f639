# SPDX-License-Identifier: Apache-2.0
"""Which changes of a spec ask for new pods."""

from typing import Any

import pytest

from gearshift.operator.manifests.revision import revision
from tests.unit.operator.builders import spec

BASE: dict[str, Any] = {"parallelism": {"layouts": ["TP", "DP"]}}


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 4},
        {"roles": [{"name": "Unified", "replicas": 3}]},
        {"parallelism": {"layouts": ["TP", "DP"], "initial": "DP"}},
        {"policy": {"window": "10s", "drainTimeout": "5s", "actuation": "Approve"}},
        {"override": {"layout": "DP", "until": "2030-01-01T00:00:00Z"}},
        {"pod": {"accelerators": 8}},
    ],
)
def test_kept_by(change: dict[str, Any]) -> None:
    assert revision(spec(**BASE | change)) == revision(spec(**BASE))


SHIFT: dict[str, Any] = {"layouts": ["Shift"], "shiftThresholdTokens": 96}


def test_a_threshold_is_changed_live_but_not_left_out_live() -> None:
    fixed = revision(spec(parallelism=SHIFT))
    assert revision(spec(parallelism=SHIFT | {"shiftThresholdTokens": 64})) == fixed
    assert revision(spec(parallelism={"layouts": ["Shift"]})) != fixed


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"uri": "hf://org/other"}},
        {"model": {"uri": "hf://org/llama", "revision": "abc"}},
        {"engine": {"kind": "Simulated", "args": ["--x"]}},
        {"engine": {"kind": "Simulated", "image": "mine:1"}},
        {"engine": {"kind": "Simulated", "env": [{"name": "A", "value": "1"}]}},
        {"pod": {"accelerators": 4}},
        {"pod": {"template": {"metadata": {"labels": {"a": "b"}}}}},
        {"parallelism": {"layouts": ["TP"]}},
        {"roles": [{"name": "Prefill"}, {"name": "Decode"}]},
    ],
)
def test_changed_by_and_back_again(change: dict[str, Any]) -> None:
    assert revision(spec(**BASE | change)) != revision(spec(**BASE))
    assert revision(spec(**BASE)) == revision(spec(**BASE))
