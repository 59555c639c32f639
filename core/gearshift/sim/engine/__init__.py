# SPDX-License-Identifier: Apache-2.0
"""The simulated engine: an OpenAI server with vLLM's interfaces whose times come from the performance model.

`core` and the modules below it (`requests`, `kv`, `replica`) are a discrete-event scheduler without clock or IO;
`runner` drives it by the event loop's clock; `server`, `control` and `kvtransfer` are its HTTP side.
"""
