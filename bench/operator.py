# SPDX-License-Identifier: Apache-2.0
"""How the operator bears a large cluster: a real API server, kwok nodes, and services with pods that an earlier
operator left.

The operator is the product's own process with the rights of ``config/rbac``. kwok plays the kubelets; one process
answers for the sidecars of all pods, each on its pod's own address. All of it runs in a network of its own on this
machine. ``bench/README.md`` says what each line means.

Run: ``tools/run python bench/operator.py [--services N] [--pods N] [--deaths N]``; prints JSON lines ``{"name",
"value", "unit", "reference", "ratio"}``, where the reference is the promise. The status is 1 when a promise is broken.
"""

import sys

if __name__ == "operator":
    # Programs of this folder that are run as files find this file where they want the standard library's `operator`.
    _folder = sys.path.pop(0)
    del sys.modules[__name__]
    import operator  # noqa: F401 - it takes the place of this file

    sys.path.insert(0, _folder)

elif __name__ == "__main__":
    from bench.scale.main import main

    sys.exit(main(sys.argv[1:]))
