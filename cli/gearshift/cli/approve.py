# SPDX-License-Identifier: Apache-2.0
"""``approve``: a human's yes to the very plan that waits for it, for a while."""

import argparse
from functools import partial
from typing import Any

from gearshift.api import names
from gearshift.api.approval import APPROVAL_SECONDS, Approval
from gearshift.api.base import rfc3339
from gearshift.api.v1alpha1.status import Decision
from gearshift.api.vocabulary import Actuation
from gearshift.cli import options
from gearshift.cli.advice import WAITING
from gearshift.cli.errors import RefusedError
from gearshift.cli.explainpage import proposed
from gearshift.cli.follow import Narrator, follow
from gearshift.cli.goals import PlanGoal, carried_out, ended
from gearshift.cli.service import Service
from gearshift.cli.session import Session, now, session
from gearshift.cli.words import decision_words, message_words, shape_words, why


def add_to(commands: Any) -> None:
    """Add the command to a parser's sub-commands."""
    parser = commands.add_parser("approve", help="say yes to the plan that waits for approval")
    parser.add_argument("name", metavar="NAME", help="InferenceService")
    parser.add_argument("plan", nargs="?", metavar="PLAN", help="id of the plan; the one that waits when left out")
    options.add_expiry(parser, APPROVAL_SECONDS, "15m")
    options.add_wait(parser, "the plan is carried out, or fails")
    options.add_dry_run(parser)
    options.add_target(parser)
    options.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the approval, and follow the plan when asked to.

    Raises:
        UsageError: the expiry is not in the future.
        RefusedError: nothing waits for approval, or another plan does; or its transition failed.
    """
    until = options.expiry(arguments, now())
    with session(arguments) as here:
        service = here.service(arguments.name)
        decision = _waiting(service, arguments.plan)
        here.say(f"plan {decision.plan}: {'; '.join([*proposed(service), message_words(decision)])}")
        approval = Approval(decision.plan, until.timestamp())
        body = here.kube.annotate(service.body, {names.ANNOTATION_APPROVE: str(approval)}, dry_run=here.dry_run)
        here.changed(body, f"approved: plan {decision.plan} until {rfc3339(until)}")
        if arguments.wait and not here.dry_run:
            body = _follow(here, service, decision.plan, arguments.timeout)
        here.show_object(body)


def _waiting(service: Service, plan: str | None) -> Decision:
    """The decision that waits for approval, if it is that of ``plan``."""
    decision = service.status.last_decision
    if decision is None or decision.reason not in WAITING:
        last = "nothing has been decided yet"
        if decision is not None:
            last = f"the last decision is {decision_words(decision)}"
        mode = "" if service.actuation == Actuation.APPROVE else f"policy.actuation is {service.actuation}; "
        raise RefusedError(f"{service.where}: no plan waits for approval; {mode}{last}")
    if plan is not None and plan != decision.plan:
        raise RefusedError(
            f"{service.where}: plan {plan!r} is not the one that waits; that is {decision.plan}: {why(decision)}"
        )
    return decision


def _follow(here: Session, before: Service, plan: str, timeout_seconds: float) -> dict[str, Any]:
    seen = ended(before)
    goal, narrator = PlanGoal(before.uid, plan, seen), Narrator(seen, before.generation, plan)
    done = follow(partial(here.service, before.name), goal, narrator, here.say, timeout_seconds)
    if carried_out(done, plan, seen):
        here.say(f"plan {plan} is carried out: {shape_words(done)}")
    else:
        last = done.status.last_decision
        here.say(f"plan {plan} waits no longer: {'-' if last is None else decision_words(last)}; {shape_words(done)}")
    return done.body
