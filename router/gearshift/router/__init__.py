# SPDX-License-Identifier: Apache-2.0
"""The OpenAI-compatible front door: forwards bytes to the pod that gearshift.scheduling chooses."""
