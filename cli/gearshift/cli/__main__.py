# SPDX-License-Identifier: Apache-2.0
"""``gearshift``: everything that ``kubectl gearshift`` does, and tools beside the cluster."""

import argparse
import sys
from collections.abc import Sequence

from gearshift.cli import kubectl, options, simulate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 when the cluster refuses, 2 when its input can't be used."""
    parser = argparse.ArgumentParser(prog="gearshift", description="Tools of Gearshift.")
    options.add_target(parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simulate.add_to(commands)
    kubectl.add_to(commands)
    return kubectl.guarded(parser.prog, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
