# SPDX-License-Identifier: Apache-2.0
"""What a human says by annotations of a service, read once for all decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gearshift.api import names
from gearshift.api.approval import Approval

_OFF: Final = ("", "false")
_ON: Final = "true"
_NOTE_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Said:
    """Approval and hold. ``problem`` names an annotation that can't be read, and its value."""

    approval: Approval | None = None
    hold: bool = False
    hold_note: str = ""
    problem: str = ""


def said(annotations: Mapping[str, str]) -> Said:
    """
    | hold annotation | holds | note |
    |---|---|---|
    | absent, empty, false | no | |
    | true | yes | |
    | anything else | yes | it |

    An approval that can't be read approves nothing.
    """
    hold = annotations.get(names.ANNOTATION_HOLD, "").strip()
    held = hold.lower() not in _OFF
    note = hold[:_NOTE_CHARACTERS] if held and hold.lower() != _ON else ""
    value = annotations.get(names.ANNOTATION_APPROVE)
    try:
        approval = None if value is None else Approval.parse(value)
    except ValueError as problem:
        return Said(None, held, note, f"annotation {names.ANNOTATION_APPROVE}: {problem}"[:1024])
    return Said(approval, held, note)
