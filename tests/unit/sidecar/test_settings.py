# SPDX-License-Identifier: Apache-2.0
"""What a sidecar reads at start: its environment and its state file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.sidecar.ledger import Record
from gearshift.sidecar.settings import SettingsError, read_settings
from gearshift.sidecar.state_file import read_record, write_record

POD = {
    "POD_NAME": "demo-0",
    "POD_UID": "u",
    "POD_IP": "10.0.0.1",
    "POD_NAMESPACE": "ns",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "6443",
}


def environ(config: PodConfig) -> dict[str, str]:
    return {**POD, names.ENV_POD_CONFIG: config.model_dump_json(by_alias=True)}


def test_a_complete_environment(make_config: Callable[..., PodConfig]) -> None:
    settings = read_settings(environ(make_config()))
    assert settings.config.model == "tiny"
    assert (settings.pod.name, settings.pod.uid) == ("demo-0", "u")
    assert settings.api_server.url == "https://10.96.0.1:6443"
    assert settings.ports.control == names.PORT_CONTROL


def test_an_api_server_with_an_ipv6_address(make_config: Callable[..., PodConfig]) -> None:
    settings = read_settings({**environ(make_config()), "KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert settings.api_server.url == "https://[fd00::1]:6443"


@pytest.mark.parametrize("name", ["POD_NAME", "POD_UID", "POD_IP", "POD_NAMESPACE", "KUBERNETES_SERVICE_HOST"])
def test_a_missing_variable_is_named(make_config: Callable[..., PodConfig], name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is not set"):
        read_settings({**environ(make_config()), name: ""})


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "GEARSHIFT_POD_CONFIG is not set"), ("{", "GEARSHIFT_POD_CONFIG"), ('{"accelerators": 0}', "accelerators")],
)
def test_a_wrong_configuration_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_settings({**POD, names.ENV_POD_CONFIG: text})


def test_a_record_is_read_as_it_was_written(make_record: Callable[..., Record], tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    assert read_record(path, "u") is None
    write_record(path, make_record(epoch=1))
    write_record(path, make_record(epoch=2))
    assert read_record(path, "u") == make_record(epoch=2)
    assert [item.name for item in tmp_path.iterdir()] == ["state.json"]


def test_a_record_of_another_pod_is_ignored(make_record: Callable[..., Record], tmp_path: Path) -> None:
    write_record(tmp_path / "state.json", make_record())
    assert read_record(tmp_path / "state.json", "other") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uid": "u"}'])
def test_an_unreadable_record_is_kept_aside(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert read_record(path, "u") is None
    assert (tmp_path / "state.json.bad").read_text() == text
