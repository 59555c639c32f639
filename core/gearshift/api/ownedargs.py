# SPDX-License-Identifier: Apache-2.0
"""Engine arguments that a service may not set, and how one is recognized: the API server refuses them in a spec, the
sidecar before it starts an engine.
"""

from collections.abc import Iterable
from typing import Final

OWNED_ARGS: Final = (
    "--host", "--port", "--model", "--served-model-name", "--revision", "--tensor-parallel-size", "-tp",
    "--data-parallel-size", "-dp", "--pipeline-parallel-size", "-pp", "--kv-transfer-config", "--worker-cls",
    "--accelerators", "--layout", "--role", "--sequence-parallel-size", "--shift-threshold-tokens",
    "--trust-remote-code", "--api-key", "--uds",
)  # fmt: skip
"""Set from other fields of the spec, or left at what sidecar and router rely on."""


def owned_args(arguments: Iterable[str]) -> list[str]:
    """Those of ``arguments`` that engines would read as one of `OWNED_ARGS`.

    Engines take ``_`` for ``-``, a value after ``=``, a key of a JSON value after ``.``, and any abbreviation.
    """
    return [argument for argument in arguments if _is_owned(_option(argument))]


def _option(argument: str) -> str:
    return argument.split("=", 1)[0].split(".", 1)[0].replace("_", "-")


def _is_owned(option: str) -> bool:
    return len(option) > 1 and option != "--" and any(owned.startswith(option) for owned in OWNED_ARGS)
