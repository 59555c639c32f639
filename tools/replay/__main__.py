# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.replay record|log``: days as the policy's tests replay them.

``record`` makes the recordings anew with the simulator; ``log`` writes the golden logs of the present policy, whose
diff is the change of behaviour.
"""

import argparse
import gzip
import sys
from pathlib import Path
from typing import Final

from gearshift.sim.replay.log import decision_log
from gearshift.sim.replay.record import dump, load
from tools.replay.days import SPECS, snapshots

DAYS: Final = Path(__file__).parents[2] / "tests" / "unit" / "policy" / "days"


def recording(name: str) -> Path:
    """Where a day is kept."""
    return DAYS / f"{name}.jsonl.gz"


def golden(name: str) -> Path:
    """Where the log of a day is kept."""
    return DAYS / f"{name}.log"


def log(name: str) -> str:
    """The log that the present policy makes of a day."""
    with gzip.open(recording(name), "rt", encoding="utf-8") as lines:
        return "".join(f"{line}\n" for line in decision_log(load(lines)))


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="replay", description="Days that the policy's tests replay.")
    parser.add_argument("command", choices=("record", "log"))
    command = parser.parse_args().command
    for name in SPECS:
        if command == "record":
            text = "".join(f"{line}\n" for line in dump(snapshots(name)))
            recording(name).write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            golden(name).write_text(log(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
