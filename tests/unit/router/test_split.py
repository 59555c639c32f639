# SPDX-License-Identifier: Apache-2.0
"""The two bodies of a split request, and which requests can be split."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.api.engine import PREFILL_TRANSFER
from gearshift.router.split import decode_body, prefill_body, splittable, transfer_params

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["model", "prompt", "max_tokens", "min_tokens", "stream", "stream_options", "x"]), JSON
)


@given(DOCUMENTS)
def test_step_one_asks_for_one_token_and_keeps_the_rest(document: dict[str, Any]) -> None:
    body = json.loads(prefill_body(document))
    changed = {"stream", "stream_options", "max_tokens", "min_tokens", "kv_transfer_params"}
    assert (body["stream"], body["max_tokens"], body["kv_transfer_params"]) == (False, 1, PREFILL_TRANSFER)
    assert "stream_options" not in body
    assert body.get("min_tokens") in (None, False, 0, 1, "", [], {})
    assert {k: v for k, v in body.items() if k not in changed} == {
        k: v for k, v in document.items() if k not in changed
    }


@given(DOCUMENTS)
def test_step_two_is_the_request_with_the_place_of_its_cache(document: dict[str, Any]) -> None:
    assert json.loads(decode_body(document, {"remote_host": "h"})) == {
        **document,
        "kv_transfer_params": {"remote_host": "h"},
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"messages": []}, True),
        ({"prompt": "one"}, True),
        ({"prompt": ["one"]}, True),
        ({"prompt": [1, 2, 3]}, True),
        ({"prompt": [[1, 2, 3]]}, True),
        ({"prompt": ["one", "two"]}, False),
        ({"prompt": [[1], [2]]}, False),
        ({"prompt": []}, False),
        ({"prompt": "one", "n": 1}, True),
        ({"prompt": "one", "n": 2}, False),
        ({"prompt": "one", "best_of": 3}, False),
        ({"prompt": "one", "echo": True}, False),
        ({"prompt": "one", "prompt_logprobs": 0}, False),
        ({"prompt": "one", "use_beam_search": True}, False),
    ],
)
def test_one_cache_serves_only_one_sequence(document: dict[str, Any], expected: bool) -> None:
    assert splittable(document) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(b'{"kv_transfer_params": {"a": 1}}', {"a": 1}), (b"{}", None), (b'{"kv_transfer_params": null}', None)],
)
def test_what_the_prefill_pod_kept(answer: bytes, expected: dict[str, Any] | None) -> None:
    assert transfer_params(answer) == expected


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"kv_transfer_params": 3}'])
def test_an_answer_that_is_no_completion_is_an_error(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting value|not a JSON object"):
        transfer_params(answer)
