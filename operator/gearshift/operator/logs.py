# SPDX-License-Identifier: Apache-2.0
"""Log lines to standard error, as JSON for a cluster or as text for a terminal."""

import json
import logging
import sys
from datetime import UTC, datetime


class _JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up(level: str, form: str) -> None:
    """Send all logs to standard error; kopf and aiohttp only speak when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(message)s")
    handler.setFormatter(_JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("kopf", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
