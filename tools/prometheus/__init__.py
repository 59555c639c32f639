# SPDX-License-Identifier: Apache-2.0
"""Prometheus beside a cluster: its configuration, and discovery for builds without Kubernetes support."""
