# SPDX-License-Identifier: Apache-2.0
"""``shift`` and ``flip``: a human's order on layout or role, with an expiry, in ``spec.override``.

An order that somebody else has put there, a GitOps tool for instance, is not overwritten: the next sync would bring it
back. ``--force-conflicts`` does so all the same.
"""

import argparse
from functools import partial
from typing import Any, Final

from gearshift.api.base import rfc3339
from gearshift.api.v1alpha1 import Override
from gearshift.api.vocabulary import Layout, Role
from gearshift.cli import options
from gearshift.cli.errors import ConflictError, RefusedError
from gearshift.cli.follow import Narrator, follow
from gearshift.cli.goals import OrderGoal, ended
from gearshift.cli.service import Service
from gearshift.cli.session import Session, now, session
from gearshift.cli.words import shape_words

_SECONDS: Final = 1800.0


def add_to(commands: Any) -> None:
    """Add the commands to a parser's sub-commands."""
    shift = commands.add_parser("shift", help="order a layout for all pods of a service, for a while")
    shift.add_argument("name", metavar="NAME", help="InferenceService")
    layouts = ", ".join(Layout)
    shift.add_argument("word", metavar="LAYOUT", type=partial(options.word, Layout), help=layouts)
    shift.set_defaults(run=run, field="layout")
    flip = commands.add_parser(
        "flip",
        help="order a role for all pods of a service that the other roles can spare, for a while",
        description="Every pod above the other roles' floors takes the role, up to its ceiling. No pod is named: which "
        "ones go is for the operator to choose.",
    )
    flip.add_argument("name", metavar="NAME", help="InferenceService")
    flip.add_argument("word", metavar="ROLE", type=_role, help=", ".join(Role))
    flip.set_defaults(run=run, field="role")
    for parser in (shift, flip):
        options.add_expiry(parser, _SECONDS, "30m")
        parser.add_argument("--force-conflicts", action="store_true", help="replace an order that somebody else gave")
        options.add_wait(parser, "all pods are as ordered, or a transition fails")
        options.add_dry_run(parser)
        options.add_target(parser)
        options.add_output(parser)


def _role(text: str) -> Role:
    try:
        return options.word(Role, text)
    except argparse.ArgumentTypeError as problem:
        raise argparse.ArgumentTypeError(f"{problem}; an order is for the service, no pod is named") from None


def run(arguments: argparse.Namespace) -> None:
    """Write the order, and follow it when asked to.

    Raises:
        UsageError: the expiry is not in the future.
        RefusedError: the service is held, does not allow the layout or role, or a transition failed.
        ConflictError: somebody else's order stands in the spec.
    """
    override = {arguments.field: arguments.word.value, "until": rfc3339(options.expiry(arguments, now()))}
    with session(arguments) as here:
        service = here.service(arguments.name)
        _check(service, override)
        body = _apply(here, service, override, force=arguments.force_conflicts)
        words = f"ordered: {arguments.field} {arguments.word.value} until {override['until']}"
        here.changed(body, words)
        if arguments.wait and not here.dry_run:
            body = _follow(here, service, Service.read(body), arguments.timeout)
        here.show_object(body)


def _check(service: Service, override: dict[str, str]) -> None:
    """Refuse what would not come true, with a better word than the API server's."""
    if service.hold is not None:
        raise RefusedError(
            f"{service.where} is held ({service.hold}), so that no order acts; "
            f"release it first: kubectl gearshift release {service.name}"
        )
    order = Override.model_validate(override)
    roles = [role.name for role in service.roles]
    if order.layout is not None and order.layout not in service.layouts:
        allowed = ", ".join(service.layouts)
        raise RefusedError(f"{service.where}: {order.layout.value!r} is not in spec.parallelism.layouts: {allowed}")
    if order.role is not None and order.role not in roles:
        raise RefusedError(f"{service.where}: {order.role.value!r} is not in spec.roles: {', '.join(roles)}")


def _apply(here: Session, service: Service, override: dict[str, str], *, force: bool) -> dict[str, Any]:
    try:
        return here.kube.apply_override(service.body, override, force=force, dry_run=here.dry_run)
    except ConflictError as problem:
        if not problem.managers:
            raise
        who = ", ".join(problem.managers)
        raise ConflictError(
            f"{service.where}: spec.override is set by {who}; change it there, or replace it with --force-conflicts"
        ) from problem


def _follow(here: Session, before: Service, after: Service, timeout_seconds: float) -> dict[str, Any]:
    """Wait for the order; ``before`` and ``after`` are the service without and with it."""
    seen = ended(before)
    goal = OrderGoal(after.uid, after.generation, after.body["spec"]["override"], seen)
    narrator = Narrator(seen, after.generation)
    done = follow(partial(here.service, after.name), goal, narrator, here.say, timeout_seconds)
    here.say(f"{done.where} is as ordered: {shape_words(done)}")
    return done.body
