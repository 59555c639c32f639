# SPDX-License-Identifier: Apache-2.0
"""Pure scheduling of requests: which pod, which split of prefill and decode, and when to refuse."""
