# SPDX-License-Identifier: Apache-2.0
"""Fleets without GPUs: a simulated engine and a discrete-event run of the same policies as the operator."""
