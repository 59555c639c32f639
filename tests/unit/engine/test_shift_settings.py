# SPDX-License-Identifier: Apache-2.0
"""Settings of the shift engine are taken as given or refused by name."""

from typing import Any

import pytest

from gearshift.engine.shift.settings import ShiftSettings, ShiftSettingsError


def test_without_settings_everything_is_automatic() -> None:
    settings = ShiftSettings.read({"someone": "else's"})
    assert (settings.sequence_parallel_size, settings.threshold_tokens) == (None, "auto")
    assert (settings.key_value_exchange, settings.transport) == ("auto", "auto")


@pytest.mark.parametrize("key", ["thresholdTokens", "threshold_tokens"])
def test_names_may_be_written_as_on_the_wire_or_as_in_python(key: str) -> None:
    assert ShiftSettings.read({"gearshift": {key: 0}}).threshold_tokens == 0


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([], "additional_config.gearshift: [] is not an object"),
        ({"threshold": 3}, "additional_config.gearshift.threshold: "),
        ({"thresholdTokens": "soon"}, "additional_config.gearshift.thresholdTokens"),
        ({"thresholdTokens": -1}, "(got -1)"),
        ({"sequenceParallelSize": 1}, "additional_config.gearshift.sequenceParallelSize"),
        ({"sequenceParallelSize": 65}, "(got 65)"),
        ({"keyValueExchange": "carry"}, "(got 'carry')"),
    ],
)
def test_a_bad_setting_is_named_with_its_value(raw: Any, words: str) -> None:
    with pytest.raises(ShiftSettingsError) as error:
        ShiftSettings.read({"gearshift": raw})
    assert words in str(error.value)
