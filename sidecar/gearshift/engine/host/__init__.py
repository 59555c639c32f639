# SPDX-License-Identifier: Apache-2.0
"""PID 1 of the engine container: it owns the engine processes so that a sidecar may come and go while they serve.

It holds no decision: the sidecar says over a Unix socket what runs (`gearshift.api.host` is the contract). It imports
neither vLLM nor torch, so it is up in a fraction of a second and stays small.
"""
