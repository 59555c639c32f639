# SPDX-License-Identifier: Apache-2.0
"""The operator's own check of a spec."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Layout, Role

_loaded = importlib.util.spec_from_file_location("api_cases", Path(__file__).with_name("cases.py"))
assert _loaded is not None
assert _loaded.loader is not None
cases = importlib.util.module_from_spec(_loaded)
_loaded.loader.exec_module(cases)


@pytest.mark.parametrize("name", cases.GOOD)
def test_servable_spec_is_read(name: str) -> None:
    InferenceServiceSpec.model_validate(cases.GOOD[name])


@pytest.mark.parametrize("name", cases.BAD)
def test_unservable_spec_is_refused_with_its_reason(name: str) -> None:
    body, message = cases.BAD[name]
    with pytest.raises(ValidationError) as caught:
        InferenceServiceSpec.model_validate(body)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", cases.BAD_BY_SCHEMA)
def test_malformed_spec_is_refused_by_its_field(name: str) -> None:
    body, field = cases.BAD_BY_SCHEMA[name]
    with pytest.raises(ValidationError) as caught:
        InferenceServiceSpec.model_validate(body)
    assert any(field in map(str, error["loc"]) or field in error["msg"] for error in caught.value.errors())


def parse(**parts: Any) -> InferenceServiceSpec:
    return InferenceServiceSpec.model_validate(cases.spec(**parts))


def test_defaults_follow_from_other_fields() -> None:
    plain = parse(model={"uri": "hf://org/llama-8b"}, parallelism={"layouts": ["DP", "TP"]})
    assert plain.served_name == "llama-8b"
    assert plain.parallelism.start is Layout.DP
    assert not plain.disaggregated
    split = parse(roles=[{"name": "Prefill", "replicas": 0}, {"name": "Decode", "replicas": 2}])
    assert split.disaggregated
    assert [(role.name, role.floor) for role in split.roles] == [(Role.PREFILL, 0), (Role.DECODE, 1)]
