# SPDX-License-Identifier: Apache-2.0
"""Commands, versions and settings of the steps: what a failure says, and what is passed on."""

import sys
from pathlib import Path

import pytest

from tools.setup import environments
from tools.setup.__main__ import main
from tools.setup.golang import go_version
from tools.setup.process import SetupError, log_path, run


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEARSHIFT_CACHE", str(tmp_path))
    return tmp_path


def test_a_failing_command_shows_the_end_of_its_log() -> None:
    with pytest.raises(SetupError, match=r"(?s)step: .* ended with code 3; log: .*the disk is full"):
        run("step", [sys.executable, "-c", "print('the disk is full'); raise SystemExit(3)"])


def test_a_missing_command_is_named() -> None:
    with pytest.raises(SetupError, match="step: the command no-such-command is not on this machine"):
        run("step", ["no-such-command"])


def test_output_goes_to_the_log_and_the_environment_is_extended() -> None:
    run(
        "step",
        [sys.executable, "-c", "import os; print(os.environ['ANSWER'], 'PATH' in os.environ)"],
        env={"ANSWER": "42"},
    )
    assert "42 True" in log_path("step").read_text()


@pytest.mark.parametrize(("text", "expected"), [("go1.24.0", (1, 24)), ("go version go1.26.8 linux/amd64", (1, 26))])
def test_go_version(text: str, expected: tuple[int, int]) -> None:
    assert go_version(text) == expected


def test_no_go_version() -> None:
    with pytest.raises(SetupError, match="'command not found' is not what"):
        go_version("command not found")


def test_the_index_and_certificates_of_pip_reach_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_CERT", "/certificates.pem")
    for name in ("UV_DEFAULT_INDEX", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    passed = environments.installer_environment()
    assert passed["UV_DEFAULT_INDEX"] == "http://index.invalid/simple"
    assert passed["SSL_CERT_FILE"] == "/certificates.pem"


def test_what_the_user_told_uv_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://mine.invalid/simple")
    assert "UV_DEFAULT_INDEX" not in environments.installer_environment()


def test_an_unknown_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["no-such-target"])
    assert "invalid choice: 'no-such-target'" in capsys.readouterr().err
