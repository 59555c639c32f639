# SPDX-License-Identifier: Apache-2.0
"""Real vLLM, prefill and decode on two pods with the KV cache over NIXL: roles flip and the text stays the same.

The service is named `vllm`: Kubernetes would give every pod of its namespace variables such as VLLM_PORT, which end
vLLM at its start, unless the pods refuse them.
"""

import urllib.request

import pytest

from gearshift.api import names
from gscluster.paths import cache_folder
from gsstack import manifests
from gsstack.client import chat, complete
from gsstack.demo.stage import tiny_model
from gsstack.services import Service, Status
from gsstack.space import Space

pytestmark = [pytest.mark.e2e, pytest.mark.vllm]

NAME = "vllm"
MODEL = "tiny"
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]
LOOSE = [{"name": "Prefill", "replicas": 1, "min": 0}, {"name": "Decode", "replicas": 1}]
PROMPT = "Tell me how prefill and decode share the work of one answer. " * 3
START_SECONDS = 480
FOREVER = "2099-01-01T00:00:00Z"


@pytest.mark.usefixtures("own_cluster")  # its nodes see the folders of this machine
def test_flips_of_real_engines_keep_the_text(space: Space) -> None:
    space.mount("engine", (cache_folder() / "envs/engine").resolve())
    space.mount("model", tiny_model())
    service = space.apply(manifests.vllm_cpu(NAME, space.name, roles=ROLES, policy={"dwell": "0s", "cooldown": "0s"}))
    service.wait_ready(START_SECONDS)
    service.wait_settled(START_SECONDS)
    before, pods = service.roles(), service.uids()
    text = _text(service)
    assert pulled(service) > 0, "the decode pod pulled KV from the prefill pod"

    service.patch({"roles": LOOSE, "override": {"role": "Decode", "until": FOREVER}})
    service.wait_for(lambda status: _serving(status) == ["Decode", "Decode"], "role Decode on both pods", 180)
    assert _text(service) == text
    service.patch({"roles": ROLES, "override": None})
    service.wait_for(lambda status: _serving(status) == ["Decode", "Prefill"], "one pod of each role", 180)
    assert _text(service) == text
    _check(service, before, pods)


def _check(service: Service, before: dict[str, str], pods: dict[str, str]) -> None:
    """Same pods, each with proof of what it did."""
    service.wait_settled(180)
    assert service.uids() == pods
    status = service.status()
    history = status["transitionHistory"]
    assert [record["result"] for record in history] == ["Committed"] * 2
    assert all(record["kind"] == "Role" and record["proof"]["probeTokens"] > 0 for record in history)
    assert sum(pod["epoch"] for pod in status["pods"]) == 2
    assert sorted(before.values()) == sorted(service.roles().values()) == ["Decode", "Prefill"]


def _text(service: Service) -> str:
    """Of a completion; a streamed chat must work too."""
    streamed = chat(service.url(), PROMPT, model=MODEL, max_tokens=12)
    assert (streamed.status, streamed.seconds_to_first_token is not None) == (200, True), streamed.text
    answer = complete(service.url(), PROMPT, model=MODEL, max_tokens=24)
    assert answer.status == 200, answer.text
    assert len(answer.text) > 10
    return answer.text


def _serving(status: Status) -> list[str]:
    return sorted(pod["role"] for pod in status.get("pods", []) if pod["phase"] == "Serving")


def pulled(service: Service) -> float:
    """Prompt tokens that the engines of the Decode pods took from another pod's KV cache."""
    decoders = [pod for pod in service.pods() if service.roles()[pod["metadata"]["name"]] == "Decode"]
    lines = [line for pod in decoders for line in _metrics(pod["status"]["podIP"]).splitlines()]
    found = [line for line in lines if line.startswith("vllm:external_prefix_cache_hits_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def _metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}:{names.PORT_ENGINE}/metrics", timeout=10) as answer:
        return str(answer.read().decode())
