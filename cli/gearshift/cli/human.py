# SPDX-License-Identifier: Apache-2.0
"""``hold`` and ``release``: a human stops everything that takes a healthy pod out of service, and lets it go on."""

import argparse
from typing import Any

from gearshift.api import names
from gearshift.cli import options
from gearshift.cli.errors import ConflictError, UsageError
from gearshift.cli.kube import owners
from gearshift.cli.service import Service
from gearshift.cli.session import session
from gearshift.operator.annotations import said


def add_to(commands: Any) -> None:
    """Add the commands to a parser's sub-commands."""
    text = "keep a service as it is: no transition, no rollout, no scaling by the policy"
    hold = commands.add_parser("hold", help=text)
    hold.add_argument("name", metavar="NAME", help="InferenceService")
    hold.add_argument("--reason", default="true", help="why, for those who read the status")
    hold.set_defaults(run=run_hold)
    release = commands.add_parser("release", help="end a hold, and the order of shift or flip")
    release.add_argument("name", metavar="NAME", help="InferenceService")
    text = "drop the order even if somebody else gave it"
    release.add_argument("--force-conflicts", action="store_true", help=text)
    release.set_defaults(run=run_release)
    for parser in (hold, release):
        options.add_dry_run(parser)
        options.add_target(parser)
        options.add_output(parser)


def run_hold(arguments: argparse.Namespace) -> None:
    """Set the annotation.

    Raises:
        UsageError: the reason would mean that there is no hold.
        RefusedError: not found, or the API server says no.
    """
    reason = _reason(arguments.reason)
    with session(arguments) as here:
        service = here.service(arguments.name)
        body = here.kube.annotate(service.body, {names.ANNOTATION_HOLD: reason}, dry_run=here.dry_run)
        here.changed(body, "held" if reason == "true" else f"held: {reason}")
        running = service.status.transition
        if running is not None:
            here.say(f"the transition of {running.pod} to {running.to} that runs goes on to its end")
        here.show_object(body)


def _reason(text: str) -> str:
    """The annotation's value, in one line."""
    reason = " ".join(text.split())
    read = said({names.ANNOTATION_HOLD: reason})
    if not read.hold:
        raise UsageError(f"--reason: {text!r} would mean that the service is not held")
    if len(reason) > len(read.hold_note) > 0:
        raise UsageError(f"--reason: {len(reason)} characters, {len(read.hold_note)} are read")
    return reason


def run_release(arguments: argparse.Namespace) -> None:
    """Remove annotation and order in one write.

    Raises:
        ConflictError: somebody else's order stands in the spec, or it changed meanwhile.
        RefusedError: not found, or the API server says no.
    """
    with session(arguments) as here:
        service = here.service(arguments.name)
        pointers, words = _removals(service)
        _check(service, force=arguments.force_conflicts)
        body = here.kube.remove(service.body, pointers, dry_run=here.dry_run) if pointers else service.body
        here.changed(body, f"released: {' and '.join(words)}" if words else "was not held and had no order")
        here.show_object(body)


def _removals(service: Service) -> tuple[dict[str, Any], list[str]]:
    """JSON pointers to remove with their values, and what they were in words."""
    pointers: dict[str, Any] = {}
    words = []
    if names.ANNOTATION_HOLD in service.annotations:
        escaped = names.ANNOTATION_HOLD.replace("~", "~0").replace("/", "~1")
        pointers[f"/metadata/annotations/{escaped}"] = service.annotations[names.ANNOTATION_HOLD]
        words.append("hold")
    if service.order is not None:
        pointers["/spec/override"] = service.body["spec"]["override"]
        words.append(f"order {service.order.words}")
    return pointers, words


def _check(service: Service, *, force: bool) -> None:
    others = owners(service.body)
    if service.order is not None and others and not force:
        raise ConflictError(
            f"{service.where}: spec.override is set by {', '.join(others)}; drop it there, or here with "
            "--force-conflicts; nothing was released"
        )
