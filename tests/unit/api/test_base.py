# SPDX-License-Identifier: Apache-2.0
"""Scalar types of the wire."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from gearshift.api.base import Duration, rfc3339


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("50ms", 0.05), ("1.5s", 1.5), ("0s", 0), ("1m500ms", 60.5)]
)
def test_duration_is_its_parts_added_up(text: str, seconds: float) -> None:
    assert Duration.parse(text).seconds == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "-1s", "1d", "1s ", "1 s", "nan"])
def test_bad_duration_is_refused_by_its_value(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration") as caught:
        Duration.parse(text)
    assert repr(text) in str(caught.value)


def test_time_is_written_in_utc_whole_seconds() -> None:
    east = timezone(timedelta(hours=2))
    assert rfc3339(datetime(2026, 5, 1, 12, 0, 1, 999, tzinfo=east)) == "2026-05-01T10:00:01Z"
    assert rfc3339(datetime(2026, 5, 1, tzinfo=UTC)) == "2026-05-01T00:00:00Z"
