# SPDX-License-Identifier: Apache-2.0
"""Command line of the simulated engine, checked before anything starts: an error names the flag and the value."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gearshift.api.base import Duration
from gearshift.api.vocabulary import Layout, Role
from gearshift.perf.arrangement import Arrangement, ArrangementError
from gearshift.perf.capacity import kv_capacity_tokens, shift_threshold_tokens, startup_seconds
from gearshift.perf.profile import Profile
from gearshift.perf.profiles import DEFAULT_PROFILE, UnknownProfileError, find_profile, profile_names
from gearshift.sim.engine.faults import Fault
from gearshift.sim.engine.replica import Knobs

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A valid command line."""

    host: str
    port: int
    side_channel_host: str | None  # where other engines read KV; None: the address of this machine
    side_channel_port: int  # 0: the API's port
    model: str
    arrangement: Arrangement
    layouts: tuple[Layout, ...]  # those whose KV cache holds a sequence of max_model_len_tokens
    role: Role
    profile: Profile
    speed: float
    startup_seconds: float  # real seconds
    max_model_len_tokens: int
    knobs: Knobs
    faults: frozenset[Fault]


def parse_options(argv: Sequence[str]) -> Options:
    """Options of ``argv``; exits with status 2 and a message on standard error when one is wrong."""
    parser = _parser()
    args = parser.parse_args(argv)
    profile: Profile = args.profile
    sequence_parallel_size = args.accelerators if args.sequence_parallel_size is None else args.sequence_parallel_size
    try:
        arrangement = Arrangement(args.layout, args.accelerators, sequence_parallel_size)
    except ArrangementError as error:
        parser.error(f"argument --sequence-parallel-size: {error}")
    threshold = args.shift_threshold_tokens
    if threshold is None:
        threshold = shift_threshold_tokens(profile, args.accelerators, sequence_parallel_size)
    arrangement = replace(arrangement, shift_threshold_tokens=threshold)
    max_model_len = args.max_model_len or _default_max_model_len(profile, arrangement)
    layouts = servable_layouts(profile, arrangement, max_model_len)
    if args.layout not in layouts:
        capacity = kv_capacity_tokens(profile, arrangement)
        parser.error(
            f"argument --max-model-len: {max_model_len} tokens do not fit the {capacity} tokens of KV that profile"
            f" {profile.name} leaves a replica in layout {args.layout} on {args.accelerators} accelerators"
        )
    startup = startup_seconds(profile, args.layout) / args.speed if args.startup is None else args.startup.seconds
    return Options(
        host=args.host,
        port=args.port,
        side_channel_host=args.side_channel_host or os.environ.get("VLLM_NIXL_SIDE_CHANNEL_HOST"),
        side_channel_port=args.side_channel_port,
        model=args.model,
        arrangement=arrangement,
        layouts=layouts,
        role=args.role,
        profile=profile,
        speed=args.speed,
        startup_seconds=startup,
        max_model_len_tokens=max_model_len,
        knobs=Knobs(args.max_num_batched_tokens, args.max_num_seqs, args.long_prefill_token_threshold),
        faults=frozenset(args.fault),
    )


def servable_layouts(profile: Profile, arrangement: Arrangement, max_model_len_tokens: int) -> tuple[Layout, ...]:
    """Layouts in which one replica holds a sequence of ``max_model_len_tokens``."""
    return tuple(
        layout
        for layout in Layout
        if kv_capacity_tokens(profile, replace(arrangement, layout=layout)) >= max_model_len_tokens
    )


def _default_max_model_len(profile: Profile, arrangement: Arrangement) -> int:
    return min(profile.max_model_len_tokens, kv_capacity_tokens(profile, arrangement)) or profile.max_model_len_tokens


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gearshift.sim.engine",
        description="An OpenAI server with vLLM's interfaces and modelled times, for rehearsals without accelerators.",
        allow_abbrev=False,
    )
    _add_addresses(parser)
    _add_pod(parser)
    _add_scheduler(parser)
    fault_help = f"be broken, for rehearsals; repeatable: {', '.join(Fault)}"
    parser.add_argument("--fault", type=_member(Fault), action="append", default=[], metavar="FAULT", help=fault_help)
    return parser


def _add_addresses(parser: argparse.ArgumentParser) -> None:
    add, port = parser.add_argument, _number(int, 0, 65535)
    side_port = os.environ.get("VLLM_NIXL_SIDE_CHANNEL_PORT", "0")
    add("--host", default="0.0.0.0", help="address of the API (default %(default)s)")  # noqa: S104  as vLLM's
    add("--port", type=port, default=8000, help="port of the API; 0: any free one (default %(default)s)")
    add("--side-channel-host", help="where others read KV (default $VLLM_NIXL_SIDE_CHANNEL_HOST, else this machine)")
    add("--side-channel-port", type=port, default=side_port, help="its port; 0: the API's (default %(default)s)")


def _add_pod(parser: argparse.ArgumentParser) -> None:
    add, layouts, roles, size = parser.add_argument, "|".join(Layout), "|".join(Role), _number(int, 1, 1024)
    names = ", ".join(profile_names())
    add("--model", default="simulated", help="served model name (default %(default)s)")
    add("--accelerators", type=size, default=8, help="accelerators of the pod (default %(default)s)")
    add("--layout", type=_member(Layout), default=Layout.TP, metavar=layouts, help="layout at start (default TP)")
    add("--role", type=_member(Role), default=Role.UNIFIED, metavar=roles, help="role at start (default Unified)")
    add("--sequence-parallel-size", type=size, help="of SP and Shift (default: all accelerators)")
    threshold_help = "Shift: steps of more tokens run SP (default: where the model says that SP is faster)"
    add("--shift-threshold-tokens", type=_number(int, 0, 1 << 20), help=threshold_help)
    add("--profile", type=_profile, default=DEFAULT_PROFILE, help=f"one of {names} (default %(default)s)")
    add("--speed", type=_number(float, 0.01, 10_000), default=1.0, help="times faster than modelled (default 1)")
    add("--startup", type=_duration, help="start-up time, such as 20s (default: as modelled)")


def _add_scheduler(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    tokens = _number(int, 1, 1 << 20)
    add("--max-model-len", type=_number(int, 1, 1 << 24), help="longest sequence in tokens (default: the model's)")
    add("--max-num-batched-tokens", type=tokens, default=8192, help="token budget of a step (default %(default)s)")
    add("--max-num-seqs", type=_number(int, 1, 1 << 16), default=256, help="most sequences in a batch (default 256)")
    prefill_help = "most prompt tokens of one request in a step; 0: no limit (default 0)"
    add("--long-prefill-token-threshold", type=_number(int, 0, 1 << 20), default=0, help=prefill_help)


def _number(kind: type[_T], low: float, high: float) -> Callable[[str], _T]:
    def parse(text: str) -> _T:
        try:
            value = kind(text)  # type: ignore[call-arg]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not low <= value <= high:  # type: ignore[operator]
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return value

    return parse


def _member(words: type[_T]) -> Callable[[str], _T]:
    def parse(text: str) -> _T:
        try:
            return words(text)  # type: ignore[call-arg]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(words)}") from None  # type: ignore[arg-type]

    return parse


def _profile(text: str) -> Profile:
    try:
        return find_profile(text)
    except UnknownProfileError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
