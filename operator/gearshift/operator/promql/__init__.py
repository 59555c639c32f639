# SPDX-License-Identifier: Apache-2.0
"""PromQL that users give: parsed, bounded and pinned to one namespace before Prometheus is asked.

The operator may read all of Prometheus, a user of one namespace may not: what a query can reach is decided on its
syntax tree, and the text that is sent is made from that tree.
"""

from gearshift.operator.promql.parsing import QueryError
from gearshift.operator.promql.pinning import Reader, pinned, template

__all__ = ["QueryError", "Reader", "pinned", "template"]
