# SPDX-License-Identifier: Apache-2.0
"""``status``, ``explain`` and ``history``: commands that only read."""

import argparse
import sys
from typing import Any

from gearshift.api import names
from gearshift.cli import explainpage, historypage, options, statuspage
from gearshift.cli.errors import UsageError
from gearshift.cli.service import Service
from gearshift.cli.session import Session, now, session


def add_to(commands: Any) -> None:
    """Add the commands to a parser's sub-commands."""
    status = commands.add_parser("status", help="what a service is and does now; all services without a name")
    status.add_argument("name", nargs="?", metavar="NAME", help="InferenceService")
    status.add_argument("-A", "--all-namespaces", action="store_true", help="services of all namespaces")
    status.set_defaults(run=run_status)
    explain = commands.add_parser("explain", help="why the last decision was made and what held it back")
    explain.add_argument("name", metavar="NAME", help="InferenceService")
    explain.set_defaults(run=run_explain)
    history = commands.add_parser("history", help="the last transitions, each with its proof")
    history.add_argument("name", metavar="NAME", help="InferenceService")
    history.set_defaults(run=run_history)
    for parser in (status, explain, history):
        options.add_target(parser)
        options.add_output(parser)


def run_status(arguments: argparse.Namespace) -> None:
    """Print one service, or a line for each.

    Raises:
        UsageError: a name together with all namespaces.
        RefusedError: not found, or the API server says no.
    """
    if arguments.name is not None and arguments.all_namespaces:
        raise UsageError(f"status: NAME {arguments.name!r} and --all-namespaces exclude each other")
    with session(arguments) as here:
        if arguments.name is None:
            _show_all(here, everywhere=arguments.all_namespaces)
            return
        service, at = here.service(arguments.name), now()
        here.show(statuspage.one(service, at), statuspage.facts(service, at))


def run_explain(arguments: argparse.Namespace) -> None:
    """Print why a service is as it is."""
    with session(arguments) as here:
        service = here.service(arguments.name)
        here.show(explainpage.page(service, now()), explainpage.facts(service))


def run_history(arguments: argparse.Namespace) -> None:
    """Print the transitions of a service."""
    with session(arguments) as here:
        service = here.service(arguments.name)
        here.show(historypage.page(service, now()), historypage.facts(service))


def _show_all(here: Session, *, everywhere: bool) -> None:
    found = [Service.read(body) for body in here.kube.list(None if everywhere else here.namespace)]
    services, at = sorted(found, key=lambda each: (each.namespace, each.name)), now()
    if not services and here.output is None:
        where = "any namespace" if everywhere else f"namespace {here.namespace}"
        sys.stderr.write(f"no {names.PLURAL} in {where}\n")
        return
    here.show(statuspage.many(services, at, namespaces=everywhere), statuspage.listed(services, at))
