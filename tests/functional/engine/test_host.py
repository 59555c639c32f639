# SPDX-License-Identifier: Apache-2.0
"""The engine host with real child processes."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.functional.engine.host_harness import ROOT, Client, Events, HostProcess, alive, known

IDLE = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)
# Lines are written whole: several processes share the stream.
# The leader forks a child in its session and one that has left it; both ignore SIGTERM.
FAMILY = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for word in ("inside", "outside"):
    if os.fork() == 0:
        if word == "outside":
            os.setsid()
        os.write(1, f"{word} {os.getpid()}\\n".encode())
        while True: signal.pause()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
os.write(1, b"up\\n")
signal.pause()
"""
# A grandchild that outlives its parent, then ends.
ORPHAN = """
import os, signal, time
if os.fork() == 0:
    child = os.getpid()
    if os.fork() == 0:
        while os.getppid() == child: time.sleep(0.01)
        os.write(1, f"orphan {os.getpid()}\\n".encode())
    os._exit(0)
signal.pause()
"""


async def test_an_exit_is_reported_with_its_code_and_last_lines(client: Client, events: Events) -> None:
    await events.next("Hello")
    started = await client.run(
        "tp", "import os; print('dying of', os.environ['CAUSE']); raise SystemExit(7)", CAUSE="x"
    )
    assert (await events.next("Started"))["process"]["pid"] == started["pid"]
    process = (await events.next("Exited"))["process"]
    assert (process["state"], process["exitCode"], process["logTail"]) == ("Exited", 7, ["dying of x"])
    assert await client.process("tp") == process


async def test_death_by_a_signal_is_a_negative_code(client: Client, events: Events) -> None:
    await client.run("tp", IDLE)
    status, _ = await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGINT"})
    assert status == 200
    assert (await events.next("Exited"))["process"]["exitCode"] in {-signal.SIGINT, 1, 130}
    await client.run("tp", IDLE)
    await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGKILL"})
    assert (await events.next("Exited"))["process"]["exitCode"] == -signal.SIGKILL


async def test_engines_lead_a_session_of_their_own(client: Client) -> None:
    process = await client.run("tp", IDLE)
    assert os.getsid(process["pid"]) == process["pid"] == os.getpgid(process["pid"])


async def test_a_dead_engine_leaves_no_member_of_its_session(client: Client, events: Events) -> None:
    await client.run("tp", FAMILY)
    inside = int(await client.printed("tp", "inside "))
    outside = int(await client.printed("tp", "outside "))
    await client.printed("tp", "up")
    await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGTERM"})
    assert (await events.next("Exited"))["process"]["exitCode"] == -signal.SIGTERM
    assert not alive(inside)
    assert alive(outside)


async def test_the_end_of_the_host_is_the_end_of_everything_below_it(client: Client, host: HostProcess) -> None:
    process = await client.run("tp", FAMILY)
    pids = [process["pid"], int(await client.printed("tp", "inside ")), int(await client.printed("tp", "outside "))]
    status, _ = await client.call("POST", "/v1/shutdown", {"graceSeconds": 0.1})
    assert status == 202
    assert await host.exit_code() == 0
    assert [pid for pid in pids if alive(pid)] == []
    assert not host.socket.exists()


async def test_orphans_are_reaped(client: Client, host: HostProcess) -> None:
    await client.run("tp", ORPHAN)
    orphan = int(await client.printed("tp", "orphan "))

    async def gone() -> bool:
        return not known(orphan)

    await client.until(gone)
    assert (await client.process("tp"))["state"] == "Running"


async def test_the_same_spec_is_harmless_and_another_one_is_refused(client: Client, events: Events) -> None:
    first = await client.run("tp", IDLE)
    assert (await client.run("tp", IDLE))["pid"] == first["pid"]
    status, answer = await client.call("PUT", "/v1/processes/tp", {"argv": ["python", "-c", "1"]})
    assert (status, answer["reason"]) == (409, "SpecDiffers")
    assert alive(first["pid"])
    await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGKILL"})
    await events.next("Exited")
    second = await client.run("tp", STUBBORN)
    assert second["pid"] != first["pid"]


async def test_the_log_is_passed_on_and_its_tail_kept(client: Client, host: HostProcess, events: Events) -> None:
    await client.run("tp", "import sys\nfor i in range(80): print('line', i, file=sys.stderr)\nprint('end')")
    tail = (await events.next("Exited"))["process"]["logTail"]
    assert tail == [*(f"line {number}" for number in range(31, 80)), "end"]
    assert [f"[tp] line {number}" for number in range(80)] == [
        line for line in host.text().splitlines() if line.startswith("[tp] line")
    ]


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("tp", {}, "argv: Field required"),
        ("tp", {"argv": []}, "argv: List should have at least 1 item"),
        ("tp", {"argv": ["python"], "env": {"A": 1}}, "env.A: Input should be a valid string"),
        ("tp", {"argv": ["no-such-program"]}, "argv[0]: 'no-such-program' is not an executable file on PATH"),
        ("tp", [1], "body: Input should be an object"),
        ("Big_Name", {"argv": ["python"]}, "name: 'Big_Name' is not a DNS label"),
    ],
)
async def test_a_bad_spec_names_its_field(client: Client, name: str, body: object, text: str) -> None:
    status, answer = await client.call("PUT", f"/v1/processes/{name}", body)
    assert status == 422
    assert text in answer["message"]
    assert (await client.call("GET", "/v1/processes"))[1]["processes"] == []


async def test_bad_signals_and_unknown_names(client: Client) -> None:
    assert (await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGTERM"}))[0] == 404
    status, answer = await client.call("POST", "/v1/processes/tp/signal", {"signal": "SIGHUP"})
    assert status == 422
    assert "signal: Input should be 'SIGTERM', 'SIGKILL' or 'SIGINT'" in answer["message"]
    assert (await client.call("GET", "/nowhere"))[0] == 404


async def test_a_quiet_stream_beats(events: Events) -> None:
    await events.next("Hello")
    before = time.monotonic()
    await events.next("Beat")
    assert time.monotonic() - before < 30.0


async def test_on_sigterm_the_engines_live_until_the_sidecar_has_drained(
    client: Client, events: Events, host: HostProcess
) -> None:
    process = await client.run("tp", IDLE)
    await client.printed("tp", "up")
    host.terminate()
    event = await events.next("Terminating")
    assert 15.0 < event["graceSeconds"] <= 20.0
    assert alive(process["pid"])
    assert (await client.call("GET", "/v1/processes"))[1]["terminating"] is True
    assert (await client.call("PUT", "/v1/processes/dp", {"argv": ["python"]}))[1]["reason"] == "Terminating"
    await client.call("POST", "/v1/shutdown", {"graceSeconds": 5})
    assert (await events.next("Exited"))["process"]["exitCode"] == -signal.SIGTERM
    assert await host.exit_code() == 0


async def test_a_stream_opened_while_terminating_hears_of_it(client: Client, events: Events, host: HostProcess) -> None:
    await client.run("tp", IDLE)
    host.terminate()
    await events.next("Terminating")
    async with client.session.get("http://host/v1/events") as response:
        assert 0 < (await Events(response).next("Terminating"))["graceSeconds"] <= 20.0


async def test_without_a_sidecar_the_host_ends_by_itself(client: Client, host: HostProcess) -> None:
    process = await client.run("tp", IDLE)
    await client.printed("tp", "up")
    host.terminate()
    assert await host.exit_code() == 0
    assert not alive(process["pid"])
    assert "NoSidecar" in host.text()


@pytest.mark.parametrize("grace_seconds", [0.5])
async def test_a_sidecar_that_never_answers_is_waited_for_no_longer_than_the_grace(
    client: Client, events: Events, host: HostProcess
) -> None:
    process = await client.run("tp", IDLE)
    await client.printed("tp", "up")
    host.terminate()
    await events.next("Terminating")
    assert await host.exit_code() == 0
    assert not alive(process["pid"])
    assert "GracePassed" in host.text()


async def test_with_nothing_running_sigterm_ends_the_host_at_once(
    client: Client, events: Events, host: HostProcess
) -> None:
    await events.next("Hello")
    began = host.terminate()
    assert await host.exit_code() == 0
    assert time.monotonic() - began < 10.0


async def test_only_the_own_user_may_speak_to_the_socket(client: Client, host: HostProcess) -> None:
    assert stat.S_IMODE(host.socket.stat().st_mode) == 0o600


def test_a_socket_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "sidecar"))
    command = [sys.executable, "-m", "gearshift.engine.host", "--socket", str(tmp_path / "none" / "host.sock")]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 2
    assert str(tmp_path / "none" / "host.sock") in done.stderr
