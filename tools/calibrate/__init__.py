# SPDX-License-Identifier: Apache-2.0
"""Fits the calibrations of `gearshift.perf` to measurements, and says how far off they are on rows left out."""
