# SPDX-License-Identifier: Apache-2.0
"""The audit log tells who wrote what; a line that is being written is not an error."""

import json
from pathlib import Path

from gscluster.audit import AuditLog, Write, parse


def _line(user: str, verb: str = "patch", stage: str = "ResponseComplete", **reference: str) -> str:
    event = {
        "stage": stage,
        "verb": verb,
        "user": {"username": user},
        "userAgent": "test",
        "objectRef": {"resource": "pods", "namespace": "default", "name": "one"} | reference,
        "responseStatus": {"code": 200},
    }
    return json.dumps(event) + "\n"


def test_a_write_has_its_subresource_and_status() -> None:
    assert list(parse([_line("operator", subresource="status")])) == [
        Write("operator", "test", "patch", "pods/status", "default", "one", 200)
    ]


def test_a_request_without_an_object_is_a_write_too() -> None:
    event = {"stage": "ResponseComplete", "verb": "create", "user": {"username": "one"}}
    assert list(parse([json.dumps(event) + "\n"])) == [Write("one", "", "create", "", "", "", 0)]


def test_other_stages_and_an_incomplete_last_line_are_left_out() -> None:
    whole = _line("operator")
    assert len(list(parse([_line("operator", stage="Panic"), whole, whole[:-10]]))) == 1


def test_only_writes_since_the_mark_of_the_user_count(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(path)
    assert log.writes() == []
    path.write_text(_line("system:serviceaccount:gearshift:operator"))
    log.mark()
    with path.open("a") as opened:
        opened.write(_line("admin") + _line("system:serviceaccount:gearshift:operator", verb="create"))
    assert [write.verb for write in log.writes("gearshift:operator")] == ["create"]
    assert len(log.writes()) == 2
