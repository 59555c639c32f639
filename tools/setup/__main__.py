# SPDX-License-Identifier: Apache-2.0
"""`python3 tools/setup TARGET...`: makes each target exist and prints its path."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    # Run as a folder, sys.path[0] is this folder; imports are relative to the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.setup.process import SetupError, say
from tools.setup.targets import TARGETS


def main(argv: list[str]) -> int:
    """Runs the targets in the order given; returns the exit status."""
    os.umask(0o022)
    try:
        for name in _arguments(argv).targets:
            TARGETS[name].run()
    except SetupError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing half-made is left, run it again to go on")
        return 130
    return 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    listing = "\n".join(f"  {name:14} {target.about}" for name, target in TARGETS.items())
    parser = argparse.ArgumentParser(
        prog="python3 tools/setup",
        description="Makes what tests and demo need, under $GEARSHIFT_CACHE (/var/cache/gearshift).",
        epilog=f"targets:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="+", choices=list(TARGETS), metavar="TARGET")
    return parser.parse_args(argv)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)  # an exception, so that running commands are ended and half results removed


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(main(sys.argv[1:]))
