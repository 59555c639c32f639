# SPDX-License-Identifier: Apache-2.0
"""What a user gets wrong, told in one line."""


class UsageError(Exception):
    """Input that can't be used. The message names the object, the field and the value."""
