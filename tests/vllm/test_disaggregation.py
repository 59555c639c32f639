# SPDX-License-Identifier: Apache-2.0
"""Prefill on one real engine and decode on the other over NIXL: the split may turn round at any time."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.vllm.engines import Client, Engine, prompt, until

ASK = {"do_remote_decode": True, "do_remote_prefill": False}


def prefill(client: Client, seed: int) -> dict[str, Any]:
    """What the decoding engine needs to pull the KV of a prompt."""
    answer = client.complete(prompt(seed, 300), 1, kv_transfer_params=ASK)
    ticket: dict[str, Any] = answer["kv_transfer_params"]
    assert ticket["do_remote_prefill"] is True
    return ticket


def decode(client: Client, seed: int, ticket: dict[str, Any]) -> list[int]:
    """Tokens made from pulled KV; asserts that KV was pulled."""
    before = client.metric("vllm:nixl_bytes_transferred_sum")
    tokens = client.tokens(prompt(seed, 300), 24, kv_transfer_params=ticket)
    assert client.metric("vllm:nixl_bytes_transferred_sum") > before
    return tokens


def take_role(client: Client, role: str, epoch: int) -> None:
    state = client.order("POST", "role", {"role": role, "epoch": epoch})
    assert (state["role"], state["epoch"], state["ranks"]) == (role, epoch, state["worldSize"])


def test_a_flip_changes_who_prefills_and_no_token(pair: tuple[Engine, Engine]) -> None:
    one, other = pair[0].client, pair[1].client
    for epoch, (giver, taker) in enumerate([(one, other), (other, one), (one, other)], start=1):
        take_role(giver, "Prefill", epoch)
        take_role(taker, "Decode", epoch)
        seed = 20 + epoch
        split = decode(taker, seed, prefill(giver, seed))
        assert split == giver.tokens(prompt(seed, 300), 24)


def test_kv_of_an_engine_that_has_flipped_can_still_be_pulled(pair: tuple[Engine, Engine]) -> None:
    one, other = pair[0].client, pair[1].client
    ticket = prefill(one, 31)
    take_role(one, "Decode", 9)
    split = decode(other, 31, ticket)
    assert split == one.tokens(prompt(31, 300), 24)


@pytest.fixture(autouse=True)
def as_before(pair: tuple[Engine, Engine]) -> Iterator[None]:
    """Leave the engines as they were found."""
    yield
    for engine in pair:
        engine.client.order("POST", "resume")
        engine.client.order("POST", "role", {"role": "Unified", "epoch": 0})


@pytest.mark.parametrize("pulls", [1, 3])
def test_a_paused_engine_still_gives_its_kv(pair: tuple[Engine, Engine], pulls: int) -> None:
    one, other = pair[0].client, pair[1].client
    seeds = range(40 + 10 * pulls, 40 + 11 * pulls)
    tickets = [prefill(one, seed) for seed in seeds]
    state = one.order("POST", "pause", {})
    assert (state["paused"], state["details"]["kvHeld"]) == (True, str(pulls))
    split = [decode(other, seed, ticket) for seed, ticket in zip(seeds, tickets, strict=True)]
    until(lambda: one.state()["details"]["kvHeld"] == "0")
    assert one.order("POST", "resume")["paused"] is False
    assert split == [one.tokens(prompt(seed, 300), 24) for seed in seeds]
