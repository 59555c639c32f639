# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.tinymodel OUT``: writes the tiny Llama (12 MB) to the folder OUT, in about a second."""

import argparse
import sys
from pathlib import Path

from tools.tinymodel.make import make
from tools.tinymodel.shape import Shape


def main() -> int:
    """Make the model; 2 when the arguments can't be met."""
    parser = argparse.ArgumentParser(prog="tinymodel", description="Makes a tiny random Llama with its own tokenizer.")
    parser.add_argument("out", type=Path, help="folder to write; made when missing")
    parser.add_argument("--kv-heads", type=int, default=4, help="key/value heads, a divisor of 8")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same bytes")
    arguments = parser.parse_args()
    try:
        make(arguments.out, Shape(kv_heads=arguments.kv_heads), arguments.seed)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"tinymodel: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
