# SPDX-License-Identifier: Apache-2.0
"""Pure decisions: a snapshot and a memory in, a plan out. No IO, no clock, no randomness, no logging."""
