# SPDX-License-Identifier: Apache-2.0
"""Contracts shared by every process: the custom resource, the wire formats, names of labels, ports and reasons.

This package imports pydantic and nothing else, so that each side of a contract can afford it.
"""
