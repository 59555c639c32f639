# SPDX-License-Identifier: Apache-2.0
"""Runs this program again in a network of its own, where pods can have addresses that nothing else on the machine
has.

The API server refuses loopback addresses in EndpointSlices, so pods get addresses of a block that is local in the new
network. It ends with the last process in it.
"""

import os
import sys
from typing import Final

POD_BLOCK: Final = "10.128.0.0/12"
_INSIDE: Final = "GEARSHIFT_BENCH_NETWORK"
_SCRIPT: Final = f'ip link set lo up && ip route add local {POD_BLOCK} dev lo && exec "$@"'


def enter(arguments: list[str]) -> None:
    """Return inside the network; outside of it, replace this process by one that is inside."""
    if os.environ.get(_INSIDE):
        return
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]
    again = [sys.executable, "-m", "bench.operator", *arguments]
    sys.stdout.flush()
    os.execvpe("unshare", [*unshare, "sh", "-c", _SCRIPT, "sh", *again], os.environ | {_INSIDE: POD_BLOCK})
