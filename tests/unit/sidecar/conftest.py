# SPDX-License-Identifier: Apache-2.0
"""Records, orders and settings that the unit tests of the sidecar start from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, PodPhase, Role
from gearshift.api.wire import TransitionRequest
from gearshift.sidecar.ledger import Record
from gearshift.sidecar.settings import ApiServer, PodFacts, Settings

Make = Callable[..., Any]


@pytest.fixture
def make_record() -> Callable[..., Record]:
    def make(**changes: Any) -> Record:
        base = {
            "uid": "u",
            "phase": PodPhase.SERVING,
            "epoch": 4,
            "sequence": 100,
            "admitting": True,
            "role": Role.UNIFIED,
            "layout": Layout.TP,
            "since": 10.0,
        }
        return Record.model_validate({**base, **changes})

    return make


@pytest.fixture
def make_order() -> Callable[..., TransitionRequest]:
    def make(**changes: Any) -> TransitionRequest:
        base = {"id": "t1", "kind": "Layout", "to": "DP", "expected_epoch": 4, "fencing_token": 7}
        return TransitionRequest.model_validate({**base, **changes})

    return make


@pytest.fixture
def make_config() -> Callable[..., PodConfig]:
    def make(**changes: Any) -> PodConfig:
        base = {
            "namespace": "ns",
            "service": "demo",
            "model": "tiny",
            "model_path": "/models/tiny",
            "engine": "VLLM",
            "device": "CPU",
            "accelerators": 2,
            "layouts": ["TP", "DP"],
            "initial_layout": "TP",
            "initial_role": "Unified",
            "disaggregated": False,
            "operator_account": "system:serviceaccount:ops:operator",
            "router_account": "system:serviceaccount:ns:demo-router",
        }
        return PodConfig.model_validate({**base, **changes})

    return make


@pytest.fixture
def make_settings(make_config: Callable[..., PodConfig], tmp_path: Path) -> Callable[..., Settings]:
    def make(**changes: Any) -> Settings:
        return Settings(
            config=make_config(**changes),
            pod=PodFacts(name="demo-0", uid="u", ip="10.1.2.3", namespace="ns"),
            api_server=ApiServer("https://127.0.0.1:1"),
            state_file=tmp_path / "state.json",
        )

    return make
