# SPDX-License-Identifier: Apache-2.0
"""The record of a pod on disk, replaced as a whole on each change: a restarted sidecar never reads half of one."""

import logging
from pathlib import Path

from pydantic import ValidationError

from gearshift.sidecar.ledger import Record

log = logging.getLogger(__name__)


def write_record(path: Path, record: Record) -> None:
    """Replace the state file by this record.

    It outlives the process, not a crash of the node, which no engine of the pod would outlive either: so nothing waits
    for the disk here, which would stop the event loop.

    Raises:
        OSError: the directory cannot be written.
    """
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(record.model_dump_json(by_alias=True), encoding="utf-8")
    draft.replace(path)


def read_record(path: Path, uid: str) -> Record | None:
    """The record that an earlier sidecar of this pod left; None when there is none for this pod.

    A file that cannot be understood is kept beside as ``*.bad`` and reported: the pod then begins anew.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        record = Record.model_validate_json(text)
    except ValidationError:
        log.exception("state file %s is unreadable, kept as %s.bad", path, path.name)
        path.replace(path.with_name(f"{path.name}.bad"))
        return None
    if record.uid != uid:
        log.error("state file %s belongs to pod uid %s, not %s: ignored", path, record.uid, uid)
        return None
    return record
