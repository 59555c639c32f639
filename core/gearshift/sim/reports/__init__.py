# SPDX-License-Identifier: Apache-2.0
"""Runs of a simulated fleet side by side: a table for the terminal, JSON, and one HTML page with plots."""
