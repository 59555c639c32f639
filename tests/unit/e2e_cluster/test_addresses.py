# SPDX-License-Identifier: Apache-2.0
"""Clusters on one machine never share an address, and never take one that the machine uses."""

from ipaddress import IPv4Network
from itertools import combinations

import pytest

from gscluster.addresses import MAX_CLUSTERS, Addresses, choose, parse_destinations
from gscluster.errors import ClusterError
from gscluster.settings import MAX_NODES


def test_no_two_clusters_overlap() -> None:
    networks = [network for index in range(MAX_CLUSTERS) for network in Addresses(index).networks()]
    assert [pair for pair in combinations(networks, 2) if pair[0].overlaps(pair[1])] == []


@pytest.mark.parametrize("index", [0, MAX_CLUSTERS - 1])
def test_every_address_is_in_its_network_and_used_once(index: int) -> None:
    addresses = Addresses(index)
    nodes = [addresses.node(number) for number in range(1, MAX_NODES + 1)]
    hosts = [addresses.machine, addresses.control_plane, *nodes]
    assert len(set(hosts)) == len(hosts)
    assert all(host in addresses.hosts for host in hosts)
    assert all(addresses.node_pods(number).subnet_of(addresses.pods) for number in range(1, MAX_NODES + 1))
    assert addresses.api_service in addresses.services


def test_a_link_name_fits_the_kernel() -> None:
    assert all(len(Addresses(index).link) <= 15 for index in range(MAX_CLUSTERS))


@pytest.mark.parametrize("index", [-1, MAX_CLUSTERS])
def test_an_index_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(ClusterError, match=f"cluster index {index}"):
        Addresses(index)


def test_the_first_free_addresses_are_chosen() -> None:
    assert choose([]) == Addresses(0)
    assert choose([IPv4Network("192.0.2.0/24")]) == Addresses(0)
    assert choose([Addresses(0).hosts]) == Addresses(1)
    assert choose([Addresses(0).node_pods(3), IPv4Network("10.97.7.0/24")]) == Addresses(2)


def test_no_free_addresses_are_an_error() -> None:
    with pytest.raises(ClusterError, match="overlap routes of this machine"):
        choose([IPv4Network("10.0.0.0/8")])


def test_destinations_are_read_without_the_default_route() -> None:
    routes: list[dict[str, object]] = [{"dst": "default", "gateway": "192.0.2.1"}, {"dst": "192.0.2.0/24"}]
    assert parse_destinations([*routes, {"dst": "10.1.2.3"}]) == [
        IPv4Network("192.0.2.0/24"),
        IPv4Network("10.1.2.3/32"),
    ]
