# SPDX-License-Identifier: Apache-2.0
"""``history``: the transitions of a service, each with the proof on which it was committed."""

from datetime import datetime

from gearshift.api.base import rfc3339
from gearshift.api.v1alpha1.status import ProofStatus, TransitionRecord
from gearshift.api.vocabulary import TransitionResult
from gearshift.cli.output import age, counted, duration, table
from gearshift.cli.service import Json, Service

_HEAD = ("STARTED", "AGE", "POD", "KIND", "FROM", "TO", "RESULT", "TOOK", "PROOF OR REASON")


def page(service: Service, now: datetime) -> str:
    """The running transition, then the ended ones, newest first."""
    running = service.status.transition
    records = [*([running] if running is not None else []), *service.status.transition_history]
    if not records:
        return f"{service.where} has had no transition\n"
    return "\n".join(table(_HEAD, [_row(record, now) for record in records])) + "\n"


def facts(service: Service) -> Json:
    """The same for machines."""
    status = service.status.dump()
    return {
        "name": service.name,
        "namespace": service.namespace,
        "transition": status.get("transition"),
        "transitionHistory": status.get("transitionHistory", []),
    }


def proof_words(proof: ProofStatus) -> str:
    """``epoch 3, 8 ranks, 1 probe token, 1 router``."""
    parts = (
        f"epoch {proof.epoch}", counted(proof.ranks, "rank"), counted(proof.probe_tokens, "probe token"),
        counted(proof.routers, "router"),
    )  # fmt: skip
    return ", ".join(parts)


def outcome_words(record: TransitionRecord) -> str:
    """The proof of a committed transition; else reason and message."""
    if record.result is TransitionResult.COMMITTED and record.proof is not None:
        return proof_words(record.proof)
    if record.result is TransitionResult.RUNNING:
        return record.phase.value
    words = [word for word in (record.reason, record.message) if word]
    return ": ".join(words) + (", for good" if record.retryable is False else "") if words else "-"


def _row(record: TransitionRecord, now: datetime) -> list[str]:
    return [
        rfc3339(record.started_at),
        age(record.started_at, now),
        record.pod,
        record.kind.value,
        record.from_,
        record.to,
        record.result.value,
        duration(record.duration_milliseconds),
        outcome_words(record),
    ]
