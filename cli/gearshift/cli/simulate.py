# SPDX-License-Identifier: Apache-2.0
"""``gearshift simulate``: a service under a request trace, policies side by side, in seconds and without a cluster."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.cli.errors import UsageError
from gearshift.perf.capacity import kv_capacity_tokens
from gearshift.perf.profiles import DEFAULT_PROFILE, UnknownProfileError, find_profile, profile_names
from gearshift.policy.scale import bounds
from gearshift.policy.targets import total_target
from gearshift.sim.fleet.controllers import PolicyNameError, controller
from gearshift.sim.fleet.outcome import Outcome
from gearshift.sim.fleet.pod import arrangement
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Arrival
from gearshift.sim.load.traces import TraceError, read_trace
from gearshift.sim.reports.compare import rows, table
from gearshift.sim.reports.page import page

_ALL_REQUESTS = 1 << 31


def add_to(commands: Any) -> None:
    """Add the command to a parser's sub-commands."""
    parser = commands.add_parser("simulate", help="play a request trace against a service, policies side by side")
    parser.add_argument("--trace", type=Path, required=True, help="Azure CSV, Mooncake or AIBrix JSON lines; .gz too")
    parser.add_argument("--spec", type=Path, required=True, help="YAML of an InferenceService, or of its spec alone")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="ours, static:N, static:P:D or reactive; repeat to compare (default: ours)",
    )
    parser.add_argument("--profile", default=DEFAULT_PROFILE, help=f"engine model: {', '.join(profile_names())}")
    parser.add_argument("--startup", type=float, default=60.0, metavar="SECONDS", help="start of a pod to serving")
    parser.add_argument("--speed", type=float, default=1.0, help="the trace, that many times faster")
    parser.add_argument("--max-requests", type=int, default=_ALL_REQUESTS, help="only the first ones of the trace")
    parser.add_argument("--reactive-target", type=float, default=16.0, help="requests in flight per pod of reactive")
    parser.add_argument("--seed", type=int, default=1, help="breaks ties of the scheduler")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report with plots")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Simulate and print.

    Raises:
        UsageError: trace, spec, policy, profile or a number can't be used.
        OSError: a file can't be read or written.
    """
    spec = read_spec(arguments.spec)
    settings = _settings(arguments)
    _check_memory(spec, settings)
    trace = _trace(arguments)
    policies = arguments.policy or ["ours"]
    outcomes = [_play(policy, spec, settings, trace, arguments.reactive_target) for policy in policies]
    sys.stdout.write(json.dumps(rows(outcomes), indent=2) + "\n" if arguments.json else table(outcomes))
    if arguments.html is not None:
        title = f"{arguments.trace.name} against {arguments.spec.name}"
        arguments.html.write_text(page(title, outcomes), encoding="utf-8")


def read_spec(path: Path) -> InferenceServiceSpec:
    """The spec in a file.

    Raises:
        UsageError: it is no YAML, or no spec; names the field.
        OSError: the file can't be read.
    """
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(body, dict):
        raise UsageError(f"{path}: holds {type(body).__name__}, not an InferenceService")
    try:
        return InferenceServiceSpec.model_validate(body.get("spec", body))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "spec"
        raise UsageError(f"{path}: {field}: {first['msg']}") from None


def _settings(arguments: argparse.Namespace) -> FleetSettings:
    if arguments.startup < 0:
        raise UsageError(f"--startup: {arguments.startup} is below 0")
    if arguments.reactive_target <= 0:
        raise UsageError(f"--reactive-target: {arguments.reactive_target} is not above 0")
    try:
        profile = find_profile(arguments.profile)
    except UnknownProfileError as error:
        raise UsageError(f"--profile: {error}") from None
    return FleetSettings(profile=profile, startup_seconds=arguments.startup, seed=arguments.seed)


def _check_memory(spec: InferenceServiceSpec, settings: FleetSettings) -> None:
    for layout in spec.parallelism.layouts:
        shape = arrangement(spec, settings, layout)
        if not kv_capacity_tokens(settings.profile, shape):
            gigabytes = settings.profile.weight_bytes / 1e9
            raise UsageError(
                f"--profile: {settings.profile.name}: {gigabytes:.0f} GB of weights leave no memory for KV"
                f" in layout {layout} on {shape.accelerators} accelerators a pod"
            )


def _trace(arguments: argparse.Namespace) -> list[Arrival]:
    if arguments.speed <= 0:
        raise UsageError(f"--speed: {arguments.speed} is not above 0")
    if arguments.max_requests < 1:
        raise UsageError(f"--max-requests: {arguments.max_requests} is below 1")
    try:
        return read_trace(arguments.trace, arguments.max_requests, arguments.speed)
    except (TraceError, UnicodeDecodeError) as error:
        raise UsageError(str(error)) from None


def _play(
    policy: str, spec: InferenceServiceSpec, settings: FleetSettings, trace: list[Arrival], target: float
) -> Outcome:
    limits = bounds(spec)
    pods = total_target(spec)
    least, most = (pods, pods) if limits is None else (limits.least, limits.most)
    try:
        chosen = controller(policy, least, most, target)
    except PolicyNameError as error:
        raise UsageError(f"--policy: {error}") from None
    return World(spec, settings, chosen, trace).run()
