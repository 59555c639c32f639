# SPDX-License-Identifier: Apache-2.0
"""``gearshift``: tools beside the cluster."""

import argparse
import sys
from collections.abc import Sequence

from gearshift.cli import simulate
from gearshift.cli.errors import UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 2 when its input can't be used."""
    parser = argparse.ArgumentParser(prog="gearshift", description="Tools of Gearshift.")
    commands = parser.add_subparsers(dest="command", required=True)
    simulate.add_to(commands)
    chosen = parser.parse_args(arguments)
    try:
        chosen.run(chosen)
    except (UsageError, OSError) as error:
        sys.stderr.write(f"gearshift: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
