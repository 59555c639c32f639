# SPDX-License-Identifier: Apache-2.0
"""Layout Shift on real vLLM with two ranks: its threshold changes under a running pod, and the text stays the same."""

import urllib.request

import pytest

from gearshift.api import names
from gscluster.paths import cache_folder
from gscluster.waiting import wait_for
from gsstack import manifests
from gsstack.client import complete
from gsstack.demo.stage import tiny_model
from gsstack.services import Service, Status
from gsstack.space import Space

pytestmark = [pytest.mark.e2e, pytest.mark.vllm]

MODEL = "tiny"
PROMPT = "Tell me how tensor and sequence parallelism share the work of one answer. " * 6
PARALLELISM = {"layouts": ["Shift", "TP"], "sequenceParallelSize": 2, "shiftThresholdTokens": 64}
POLICY = {"window": "5s", "dwell": "0s", "cooldown": "0s"}
NEVER, ALWAYS = 1_000_000, 0
START_SECONDS = 480
FOREVER = "2099-01-01T00:00:00Z"


@pytest.mark.usefixtures("own_cluster")  # its nodes see the folders of this machine
def test_a_threshold_changes_under_a_running_pod(space: Space) -> None:
    service = serve(space)
    pods = service.uids()
    assert threshold(service.status()) == 64
    text = answer(service)
    prefilled = steps(service)
    assert prefilled["SP"] > 0, "the prompt is longer than the threshold"
    assert prefilled["TP"] > 0, "one token a step is not"

    change(service, NEVER)
    before = steps(service)
    assert answer(service) == text
    assert moved(service, before) == {"TP"}

    change(service, ALWAYS)
    before = steps(service)
    assert answer(service) == text
    assert moved(service, before) == {"SP"}

    service.patch({"override": {"layout": "TP", "until": FOREVER}})
    service.wait_for(lambda status: layouts(status) == ["TP"], "layout TP", 180)
    assert answer(service) == text
    check(service, pods)


def serve(space: Space) -> Service:
    """A service of one pod with two ranks."""
    space.mount("engine", (cache_folder() / "envs/engine").resolve())
    space.mount("model", tiny_model())
    manifest = manifests.vllm_cpu("shift", space.name, accelerators=2, parallelism=PARALLELISM, policy=POLICY)
    service = space.apply(manifest)
    service.wait_ready(START_SECONDS)
    service.wait_settled(START_SECONDS)
    return service


def change(service: Service, tokens: int) -> None:
    """Change the threshold in the spec; return when the pod says that its engine holds it."""
    service.patch({"parallelism": {"shiftThresholdTokens": tokens}})
    service.wait_for(
        lambda status: threshold(status) == tokens and layouts(status) == ["Shift"], f"{tokens} tokens", 60
    )


def check(service: Service, pods: dict[str, str]) -> None:
    """The same pod, with proof of all that it did."""
    service.wait_settled(180)
    assert service.uids() == pods
    status = service.status()
    history = [(one["from"], one["to"], one["result"]) for one in status["transitionHistory"]]
    assert history == [("Shift", "TP", "Committed"), *[("Shift", "Shift", "Committed")] * 2]
    assert [one["proof"]["ranks"] for one in status["transitionHistory"]] == [2, 2, 2]
    assert [pod["epoch"] for pod in status["pods"]] == [3]
    assert threshold(status) is None, "only layout Shift has one"


def threshold(status: Status) -> int | None:
    """That of the only pod, as status says."""
    (pod,) = status["pods"]
    found: int | None = pod.get("shiftThresholdTokens")
    return found


def layouts(status: Status) -> list[str]:
    """Layouts of the pods that serve, once no transition runs."""
    if status.get("transition") is not None:
        return []
    return [pod["layout"] for pod in status.get("pods", []) if pod["phase"] == "Serving"]


def answer(service: Service) -> str:
    """Text of a completion."""
    found = complete(service.url(), PROMPT, model=MODEL, max_tokens=24)
    assert found.status == 200, found.text
    assert len(found.text) > 10
    return found.text


def steps(service: Service) -> dict[str, float]:
    """Engine steps by layout, once nothing moves them any more."""
    seen: list[dict[str, float]] = [{}]

    def still() -> bool:
        last, seen[0] = seen[0], _steps(service)
        return last == seen[0]

    wait_for(still, "the steps to stand still", timeout_seconds=180, interval_seconds=2.5)
    return seen[0]


def moved(service: Service, before: dict[str, float]) -> set[str]:
    """Layouts in which the engine has made steps."""
    now = steps(service)
    return {layout for layout, count in now.items() if count > before[layout]}


def _steps(service: Service) -> dict[str, float]:
    (pod,) = service.pods()
    url = f"http://{pod['status']['podIP']}:{names.PORT_ENGINE}/metrics"
    with urllib.request.urlopen(url, timeout=10) as page:
        lines = page.read().decode().splitlines()
    counts = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    return {layout: counts[f'gearshift_shift_steps_total{{layout="{layout}"}}'] for layout in ("TP", "SP")}
