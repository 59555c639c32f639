# SPDX-License-Identifier: Apache-2.0
"""``make demo``: from ``kubectl apply`` to streamed tokens, a role flip on real vLLM, and a bursty minute by itself."""
