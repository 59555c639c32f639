# SPDX-License-Identifier: Apache-2.0
"""Conditions that say who moves the service."""

from typing import Any

import pytest

from gearshift.policy.ownerview import held, scaling_active
from gearshift.policy.scale import bounds
from tests.unit.policy.build import pod, snapshot, spec

ROOM = {"roles": [{"name": "Unified", "replicas": 2, "max": 8}]}
EXTERNAL = {"scaling": {"owner": "External"}}


@pytest.mark.parametrize(
    ("fields", "hold", "expected"),
    [
        (ROOM, False, ("True", "WithinBounds")),
        ({**ROOM, "scaling": {"owner": "Gearshift"}}, False, ("True", "WithinBounds")),
        ({**ROOM, "policy": {"actuation": "Approve"}}, False, ("True", "WithinBounds")),
        ({**ROOM, "policy": {"actuation": "Advisory"}}, False, ("False", "Advisory")),
        (ROOM, True, ("False", "HumanHold")),
        ({**ROOM, **EXTERNAL}, False, ("False", "ExternallyManaged")),
        ({**ROOM, **EXTERNAL, "replicas": 3}, True, ("False", "ExternallyManaged")),
        ({**ROOM, "replicas": 3}, False, ("False", "ExternallyManaged")),
        ({}, False, ("False", "Fixed")),
        ({"roles": [{"name": "Prefill", "max": 4}, {"name": "Decode", "max": 4}]}, False, ("False", "Fixed")),
    ],
)
def test_who_scales(fields: dict[str, Any], hold: bool, expected: tuple[str, str]) -> None:
    state = snapshot([pod(0)], spec(**fields), hold=hold)
    assert scaling_active(state)[:2] == expected
    assert (bounds(state.spec) is not None) == (expected[1] not in ("ExternallyManaged", "Fixed"))


def test_the_owner_outside_is_told_with_its_number() -> None:
    told = scaling_active(snapshot([pod(0)], spec(**ROOM, **EXTERNAL, replicas=3)))
    assert told[2] == "spec.replicas (3) has an owner outside; the policy changes layouts and roles only"


def test_a_hold_is_told_with_its_note() -> None:
    assert held(snapshot([pod(0)]))[:2] == ("False", "NotHeld")
    status, reason, message = held(snapshot([pod(0)], hold=True, hold_note="incident 7"))
    assert (status, reason) == ("True", "HumanHold")
    assert message.endswith(": incident 7")
