# SPDX-License-Identifier: Apache-2.0
"""``kubectl gearshift``: the plugin's parser, and exit codes: 0 done, 1 refused or not found, 2 wrong usage."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from gearshift.cli import approve, human, options, orders, show
from gearshift.cli.errors import RefusedError, UsageError

COMMANDS = (show, approve, human, orders)


def add_to(commands: Any) -> None:
    """Add every command that speaks to a cluster to a parser's sub-commands."""
    for module in COMMANDS:
        module.add_to(commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the plugin."""
    parser = argparse.ArgumentParser(
        prog="kubectl gearshift", description="See why InferenceServices are as they are, and have a say in it."
    )
    options.add_target(parser)
    add_to(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"))
    return guarded(parser.prog, parser.parse_args(arguments))


def guarded(prog: str, chosen: argparse.Namespace) -> int:
    """Run a chosen command; its exit code, and one line on stderr where it is not 0."""
    try:
        chosen.run(chosen)
        sys.stdout.flush()
    except UsageError as error:
        return _said(prog, error, 2)
    except RefusedError as error:
        return _said(prog, error, 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; what is left goes nowhere
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _said(prog, error, 2)
    return 0


def _said(prog: str, error: Exception, code: int) -> int:
    sys.stderr.write(f"{prog}: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
