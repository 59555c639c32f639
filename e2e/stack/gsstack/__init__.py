# SPDX-License-Identifier: Apache-2.0
"""Gearshift on a cluster, as the demo and the end-to-end tests want it: operator, Prometheus, services, a client."""
