# SPDX-License-Identifier: Apache-2.0
"""Makes a tiny random Llama, so that a real vLLM can run in demo and tests on two CPU cores without a download."""
