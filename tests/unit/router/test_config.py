# SPDX-License-Identifier: Apache-2.0
"""What a router needs to start: its configuration, its access to the API server, its tokens."""

import json
from pathlib import Path

import pytest
import yaml

from gearshift.api import names
from gearshift.router.__main__ import ConfigError, load_config
from gearshift.router.kubeaccess import AccessError, find_access
from gearshift.router.tokens import TokenFile

CONFIG = {"namespace": "apps", "service": "chat", "serviceUid": "u1", "model": "m"}


def test_a_good_configuration() -> None:
    assert load_config({names.ENV_ROUTER_CONFIG: json.dumps(CONFIG)}).queue_timeout.seconds == 30.0


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "GEARSHIFT_ROUTER_CONFIG is not set"),
        ({names.ENV_ROUTER_CONFIG: "{"}, "document: Invalid JSON"),
        (
            {names.ENV_ROUTER_CONFIG: json.dumps({**CONFIG, "maxQueue": -1})},
            "maxQueue: Input should be greater than or equal to 0, not -1",
        ),
        ({names.ENV_ROUTER_CONFIG: json.dumps({**CONFIG, "queueTimeout": "soon"})}, "'soon' is not a duration"),
        (
            {names.ENV_ROUTER_CONFIG: json.dumps({**CONFIG, "service": None})},
            "service: Input should be a valid string, not None",
        ),
    ],
)
def test_a_bad_configuration_is_named_by_field_and_value(env: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(env)
    assert words in str(caught.value)


def kubeconfig(path: Path, user: dict[str, str], context: str = "x") -> dict[str, str]:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1/"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
        "current-context": context,
    }
    path.write_text(yaml.safe_dump(document))
    return {"KUBECONFIG": str(path)}


def test_a_kubeconfig_with_a_token(tmp_path: Path) -> None:
    access = find_access(kubeconfig(tmp_path / "k", {"token": "t"}))
    assert (access.server, access.headers()) == ("http://127.0.0.1:1", {"Authorization": "Bearer t"})


def test_a_kubeconfig_with_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t2\n")
    access = find_access(kubeconfig(tmp_path / "k", {"tokenFile": "token"}))
    assert access.headers() == {"Authorization": "Bearer t2"}


def test_access_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no context is named 'y'"):
        find_access(kubeconfig(tmp_path / "k", {}, "y"))
    with pytest.raises(AccessError, match="neither KUBECONFIG nor KUBERNETES_SERVICE_HOST"):
        find_access({})


def test_a_rotated_token_is_read_again_when_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    token = TokenFile(path)
    assert token.header() == {"Authorization": "Bearer one"}
    path.write_text("two")
    assert token.header() == {"Authorization": "Bearer one"}
    token.expire()
    assert token.header() == {"Authorization": "Bearer two"}
