# SPDX-License-Identifier: Apache-2.0
"""A fleet of modelled pods under a request trace: discrete events, the product's own policy and scheduling code."""
