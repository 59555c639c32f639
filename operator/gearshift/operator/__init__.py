# SPDX-License-Identifier: Apache-2.0
"""The operator's shell: gathers a snapshot, lets gearshift.policy decide, applies the plan and reports."""
