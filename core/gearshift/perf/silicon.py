# SPDX-License-Identifier: Apache-2.0
"""Rows of AIConfigurator's public silicon table as deployments, loads and measurements.

The table writes one machine in several ways (tp: tp_size, dp: attention_dp_size, moe: moe_tp_size x moe_ep_size); a
reading settles on one:

| row | meaning |
|---|---|
| tp or dp of 16 or 64, and moe of n x n the same | n accelerators: the sizes were multiplied. The same times are in \
plain rows too, which tell how the experts were spread: expert parallel for DeepSeek-R1 and with dp, else by tensor |
| tp of n and dp of n, moe of 1 x n*n | n accelerators with expert parallelism, batch_size is that of one of dp ranks |
| dp empty | as many ranks as the experts' accelerators need; batch_size is over all of them |
| dp of d | batch_size is that of one of d ranks |
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gearshift.perf.deployment import Deployment, Workload

MULTIPLIED = 16
"""Accelerators from which on a row of the table can't be of one host of 8."""

EXPERT_PARALLEL_IF_MULTIPLIED = frozenset({"deepseek-ai/DeepSeek-R1"})
"""Models whose multiplied tensor-parallel rows have the times of their plain rows of expert parallelism."""


class SiliconError(ValueError):
    """A row that is not of the table. The message names the column."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One row."""

    deployment: Deployment
    workload: Workload
    ttft_seconds: float
    tpot_seconds: float


@dataclass(frozen=True, slots=True)
class _Sizes:
    tensor: int
    data: int
    expert_tensor: int
    expert: int
    concurrency: int


def measured(row: Mapping[str, str]) -> Measured:
    """One row of the table, columns by name.

    Raises:
        SiliconError: a column is missing or no number.
    """
    try:
        sizes = _sizes(row)
        deployment = Deployment(
            gpu=row["system"],
            backend=row["backend"],
            model=row["model_path"],
            tensor_parallel=sizes.tensor,
            data_parallel=sizes.data,
            expert_tensor_parallel=sizes.expert_tensor,
            expert_parallel=sizes.expert,
            precision=row["gemm_quant_mode"] or "bf16",
            version=row["backend_version"],
        )
        workload = Workload(concurrency=sizes.concurrency, input_tokens=int(row["isl"]), output_tokens=int(row["osl"]))
        return Measured(
            deployment, workload, float(row["silicon_ttft_ms"]) / 1000, float(row["silicon_tpot_ms"]) / 1000
        )
    except KeyError as error:
        raise SiliconError(f"column {error} is missing") from None
    except ValueError as error:
        raise SiliconError(str(error)) from None


def _sizes(row: Mapping[str, str]) -> _Sizes:
    tensor, data = _number(row["tp_size"]), _number(row["attention_dp_size"])
    expert_tensor, expert = _number(row["moe_tp_size"]), _number(row["moe_ep_size"])
    batch = int(row["batch_size"])
    ranks, gpus = max(tensor, data), expert_tensor * expert
    if expert_tensor == expert and ranks == gpus and ranks >= MULTIPLIED:
        n = expert
        if tensor > 1:
            spread = (1, n) if row["model_path"] in EXPERT_PARALLEL_IF_MULTIPLIED else (n, 1)
            return _Sizes(n, 1, *spread, batch)
        return _Sizes(1, n, 1, n, batch * data)
    if data > 1 and tensor > 1 and tensor * data == expert:
        return _Sizes(tensor, 1, 1, tensor, batch * data)
    if row["attention_dp_size"] == "":
        return _Sizes(tensor, max(1, gpus // tensor), expert_tensor, expert, batch)
    return _Sizes(tensor, data, expert_tensor, expert, batch * data)


def _number(text: str) -> int:
    """A size; empty and 0 stand for 1."""
    return max(1, int(text)) if text else 1
