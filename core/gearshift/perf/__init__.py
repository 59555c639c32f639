# SPDX-License-Identifier: Apache-2.0
"""How fast an engine is in each layout: the model that predictions and the simulated engine use."""
