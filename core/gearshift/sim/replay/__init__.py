# SPDX-License-Identifier: Apache-2.0
"""Recorded snapshots of a service, and the log of what the policy decides on them."""
