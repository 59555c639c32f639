# SPDX-License-Identifier: Apache-2.0
"""Applications reach a service over the OpenAI API: from this machine, from a node and from a pod, streamed or not."""

import json

import pytest

from gearshift.api import names
from gsstack.chain import Chain
from gsstack.client import chat, complete
from gsstack.services import Service
from gsstack.space import Space

pytestmark = pytest.mark.e2e

PROMPT = "Tell me how prefill and decode share the work of one answer."
MODEL = "simulated"
ASK = "import sys, urllib.request as r; print(r.urlopen(r.Request(sys.argv[1], sys.argv[2].encode())).read().decode())"


def test_tokens_come_as_they_are_made(chain: Chain, space: Space) -> None:
    service = space.serve("chat", args=["--profile=llama-3-70b-fp8-h200", "--startup=1s"])
    pieces: list[str] = []
    streamed = chat(service.url(), PROMPT, model=MODEL, max_tokens=48, on_text=pieces.append)
    assert streamed.status == 200
    assert len([piece for piece in pieces if piece]) > 10
    assert streamed.text == "".join(pieces)
    assert streamed.seconds_to_first_token is not None
    assert streamed.seconds_to_first_token < streamed.seconds / 2
    _check_everywhere(chain, service)


def _check_everywhere(chain: Chain, service: Service) -> None:
    """One completion, asked for from three places: the same text."""
    text = complete(service.url(), PROMPT, model=MODEL).text
    assert len(text) > 40
    url = f"{service.url()}/v1/completions"
    body = json.dumps({"model": MODEL, "prompt": PROMPT, "max_tokens": 24, "temperature": 0})
    curl = ["curl", "--silent", "--fail", "--max-time", "30", "-H", "Content-Type: application/json", "-d", body, url]
    for node in chain.cluster.settings.node_names():
        assert _text(chain.cluster.run_in_node(node, curl)) == text
    by_name = f"{service.status()['url']}.cluster.local/v1/completions"
    assert by_name.startswith(f"http://{names.router_name(service.name)}.{service.namespace}.svc")
    words = ["exec", "-n", service.namespace, service.pods()[0]["metadata"]["name"], "-c", names.CONTAINER_ENGINE]
    assert _text(chain.kubectl(*words, "--", "python3", "-c", ASK, url, body)) == text


def _text(answer: str) -> str:
    return str(json.loads(answer)["choices"][0]["text"])
