# SPDX-License-Identifier: Apache-2.0
"""Pure helpers on command lines and processor lists that the launch of an engine is built from."""

from collections.abc import Sequence


def take_option(arguments: Sequence[str], option: str) -> tuple[str | None, list[str]]:
    """Last value of a long option in ``--option value`` or ``--option=value`` form, and the arguments without it.

    Raises:
        ValueError: the option ends the line without a value.
    """
    value: str | None = None
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument.startswith(f"{option}="):
            value = argument.partition("=")[2]
        elif argument == option:
            value = next(remaining, None)
            if value is None:
                raise ValueError(f"engine argument {option} has no value")
        else:
            rest.append(argument)
    return value, rest


def find_options(arguments: Sequence[str], reserved: Sequence[str]) -> list[str]:
    """Those of the ``reserved`` options that occur in ``arguments``, spelled with ``-`` or ``_``."""
    given = {_canonical(argument) for argument in arguments if argument.startswith("-")}
    return [option for option in reserved if _canonical(option) in given]


def omp_threads_bind(cpus: Sequence[int], ranks: int) -> str:
    """Value of ``VLLM_CPU_OMP_THREADS_BIND``: one group of processors a rank, as in ``0,1|2,3``.

    With fewer processors than ranks they are used in turn, because vLLM wants a group for every rank.

    Raises:
        ValueError: no processor, or no rank.
    """
    if not cpus or ranks < 1:
        raise ValueError(f"cannot bind {ranks} ranks to {len(cpus)} processors")
    share = len(cpus) // ranks
    if share == 0:
        return "|".join(str(cpus[rank % len(cpus)]) for rank in range(ranks))
    return "|".join(",".join(str(cpu) for cpu in cpus[rank * share : (rank + 1) * share]) for rank in range(ranks))


def split_whole(total: float, residents: int) -> float:
    """Share of one of ``residents`` engines in a memory that all of them together may use; 4 decimals, rounded down."""
    return int(total / residents * 10_000) / 10_000


def _canonical(argument: str) -> str:
    return argument.partition("=")[0].replace("_", "-")
