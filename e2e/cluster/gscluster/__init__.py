# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on one machine, for the demo and the tests: no container engine, no image registry, no route out
of it.

Every node (and the control plane) is one holder process with a network and a mount namespace of its own, and every
process of the cluster runs in one control group. So the cluster ends when the processes of that group have ended: the
kernel then takes back mounts, namespaces, links, routes and rules.
"""
