# SPDX-License-Identifier: Apache-2.0
"""How the operator's process ends: at once, when its work has ended.

The interpreter's own way out waits for every task, and cancels helpers of kopf that others of kopf's tasks wait for:
with events under way it would never end.
"""

import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

from gearshift.operator.errors import SettingsError

_log = logging.getLogger(__name__)


async def leave_after(work: Coroutine[Any, Any, int]) -> NoReturn:
    """End the process with the exit code of ``work``, whatever else still runs; with 1 when it fails.

    Raises:
        SettingsError: the process can't do its work as it was told to.
    """
    try:
        code = await work
    except SettingsError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, it is logged and ends the process
        _log.exception("the operator fails")
        code = 1
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
