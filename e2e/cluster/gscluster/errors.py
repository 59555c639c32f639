# SPDX-License-Identifier: Apache-2.0
"""The one exception that callers of this package need to know."""


class ClusterError(RuntimeError):
    """A cluster cannot be started, reached or changed; the message names the cluster or component and says what to
    do."""
