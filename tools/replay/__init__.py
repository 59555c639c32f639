# SPDX-License-Identifier: Apache-2.0
"""Records synthetic days of a service, and writes the log of what the policy decides on them."""
