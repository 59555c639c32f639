# SPDX-License-Identifier: Apache-2.0
"""Layout Shift inside vLLM: tensor or sequence parallel, chosen for every engine step.

The engine is a plain vLLM of ``tensor_parallel_size = P``. A worker class adds one more module tree, whose base tensor
parallel size is ``P / SP``, and wraps the outer ``forward``: a step with more scheduled tokens than the threshold has
its tokens sliced over the SP group and runs that tree; the others run vLLM's own. KV cache, scheduler, connectors,
graphs and sampler stay vLLM's. The idea is Shift Parallelism (arXiv 2509.16495).

`settings`, `ranks`, `exchange`, `steps`, `calibration` and `support` are pure; `worker` and below need vLLM and torch.
"""
