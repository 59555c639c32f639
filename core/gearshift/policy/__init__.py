# SPDX-License-Identifier: Apache-2.0
"""Pure decisions about layout, role and number of pods: a snapshot goes in, a plan with its reasons comes out."""
