# SPDX-License-Identifier: Apache-2.0
"""``python -m gsstack.demo [--keep] [--act chat|burst]``."""

import argparse
import sys

from gscluster.errors import ClusterError
from gsstack.demo import burst, chat, screen
from gsstack.demo.stage import NAMESPACE, Stage, stage

ACTS = {"chat": chat.play, "burst": burst.play}


def main(words: list[str]) -> int:
    """Play the acts; status 1 with one message when something is not as promised."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything up and say how to look at it")
    parser.add_argument("--act", choices=ACTS, action="append", help="play only this act")
    options = parser.parse_args(words)
    try:
        with stage(keep=options.keep) as on:
            for name in options.act or ACTS:
                ACTS[name](on)
            if options.keep:
                _how_to_look(on)
    except (ClusterError, chat.DemoError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    screen.title("Done")
    return 0


def _how_to_look(on: Stage) -> None:
    screen.title("Everything is left running")
    screen.block(
        f"export KUBECONFIG={on.cluster.kubeconfig}\n"
        f"kubectl get gsvc -n {NAMESPACE}; kubectl describe gsvc chat -n {NAMESPACE}\n"
        f"Prometheus: {on.prometheus.url}\n"
        "make clean ends it"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
