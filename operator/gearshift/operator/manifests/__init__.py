# SPDX-License-Identifier: Apache-2.0
"""Pure builders of the child objects of an ``InferenceService``, one module a kind. No IO and no clock."""
