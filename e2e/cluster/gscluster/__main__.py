# SPDX-License-Identifier: Apache-2.0
"""`python -m gscluster`: up, down, status, logs, faults."""

import sys

from gscluster.cli import main

sys.exit(main(sys.argv[1:]))
