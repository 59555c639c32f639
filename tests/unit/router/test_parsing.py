# SPDX-License-Identifier: Apache-2.0
"""Any bytes are a request or an OpenAI error, never a crash."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gearshift.router.errors import ApiError, quoted
from gearshift.router.headers import request_headers, response_headers
from gearshift.router.parsing import parse_request

VALUES = st.none() | st.booleans() | st.floats() | st.text() | st.lists(st.integers())


@given(
    st.binary()
    | st.dictionaries(st.sampled_from(["model", "stream", "n"]), VALUES).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_request_or_a_client_error(raw: bytes) -> None:
    error = refusal(raw)
    if error is None:
        assert parse_request(raw).raw is raw
    else:
        assert error.status == 400
        assert set(json.loads(error.body())["error"]) == {"message", "type", "param", "code"}


def refusal(raw: bytes) -> ApiError | None:
    try:
        parse_request(raw)
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize(("stream", "expected"), [("", False), (', "stream": null', False), (', "stream": true', True)])
def test_stream_is_off_unless_true(stream: str, expected: bool) -> None:
    assert parse_request(f'{{"model": "m"{stream}}}'.encode()).stream is expected


@given(st.text() | st.lists(st.text()))
def test_a_quoted_value_is_short_and_printable(value: object) -> None:
    text = quoted(value)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) <= 70 * 10


def test_only_known_request_headers_pass() -> None:
    raw = [
        (b"Host", b"h"),
        (b"X-Forwarded-For", b"1.2.3.4"),
        (b"Connection", b"close"),
        (b"Traceparent", b"00-1"),
        (b"Content-Type", b"a/b"),
        (b"Accept-Encoding", b"gzip"),
    ]
    assert request_headers(raw) == {
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "a/b",
        "traceparent": "00-1",
        "user-agent": "gearshift-router",
    }


def test_answer_headers_pass_but_for_those_of_the_connection() -> None:
    raw = [
        (b"Content-Type", b"a/b"),
        (b"X-Twice", b"1"),
        (b"X-Twice", b"2"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"x"),
        (b"Server", b"u"),
    ]
    assert list(response_headers(raw).items()) == [("Content-Type", "a/b"), ("X-Twice", "1"), ("X-Twice", "2")]
