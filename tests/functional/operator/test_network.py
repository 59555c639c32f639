# SPDX-License-Identifier: Apache-2.0
"""Between operator and API server: refusals, delays, lost answers, broken watches."""

from collections.abc import Iterator

import pytest

from gscluster.fast import FastCluster
from tests.functional.operator.faults import Call, Fault, looking, writing
from tests.functional.operator.oracle import as_the_spec_says, settles
from tests.functional.operator.proxy import Proxy
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = pytest.mark.functional

FAULTS = {
    "all calls get 500": Fault(status=500),
    "half of all calls get 429": Fault(status=429, share=0.5),
    "half of the writes are done and not answered": Fault(writing, loses_answer=True, share=0.5),
    "every call takes a second": Fault(delay_seconds=1.0),
}


def unified(pods: int) -> list[dict[str, object]]:
    """Roles of a spec that asks for so many pods."""
    return [{"name": "Unified", "replicas": pods}]


@pytest.fixture(scope="module")
def proxy(cluster: FastCluster) -> Iterator[Proxy]:
    """On the way of the operator, not of the test."""
    one = Proxy(cluster)
    yield one
    one.close()


@pytest.fixture(scope="module")
def leader(cluster: FastCluster, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """An operator behind it. It lists everything anew as seldom as in production."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), server=proxy.url) as one:
        yield one


def making_pods(call: Call) -> bool:
    """Calls that make a pod."""
    return call.method == "POST" and call.path.endswith("/pods") and not call.dry


@pytest.mark.usefixtures("leader")
@pytest.mark.parametrize("how", ["gone", "failed"])
def test_a_death_is_told_while_no_pod_can_be_made(space: Space, proxy: Proxy, how: str) -> None:
    space.apply(roles=unified(2))
    first, *_ = space.serve(2).values()
    lost = first.state.pod
    with proxy.fault(Fault(making_pods, status=500)):
        if how == "gone":
            space.kubelet.lose(first.state.uid)
        else:
            space.kubelet.report(lost, first.address, "Failed", ready=False)
        until(lambda: space.status()["readyReplicas"] == 1, "the status to tell of the death")
        assert lost not in {pod["name"] for pod in space.status()["pods"] if pod["ready"]}
    settles([space], lambda one: as_the_spec_says(one, 2), "two pods and all children")


@pytest.mark.usefixtures("leader")
@pytest.mark.parametrize("name", FAULTS)
def test_calls_that_fail(space: Space, proxy: Proxy, name: str) -> None:
    space.apply(roles=unified(1))
    space.serve(1)
    with proxy.fault(FAULTS[name]) as fault:
        space.apply(roles=unified(2))
        space.cluster.kubectl("delete", "networkpolicy", "chat", "-n", space.name)
        until(lambda: fault.met >= 2, "the operator to meet the fault")
    settles([space], lambda one: as_the_spec_says(one, 2), "two pods and all children")
    assert {pod["metadata"]["name"] for pod in space.kubelet.pods()} == {"chat-0", "chat-1"}


@pytest.mark.parametrize("how", ["clean", "reset", "gone", "error"])
def test_watches_that_break_while_the_only_pod_vanishes(space: Space, proxy: Proxy, leader: Operator, how: str) -> None:
    space.apply(roles=unified(1))
    space.serve(1)
    (lost,) = (pod["metadata"]["uid"] for pod in space.kubelet.pods())
    with proxy.fault(Fault(looking, status=503)) as blind:
        assert proxy.break_watches(how) > 5
        until(lambda: blind.met >= 5, "the operator to ask again")
        space.kubelet.lose(lost)
        space.cluster.kubectl("delete", "service", "chat-pods", "-n", space.name)
        space.apply(roles=unified(2))
    settles([space], lambda one: as_the_spec_says(one, 2), "two pods and all children")
    assert lost not in space.uids()
    assert leader.process.poll() is None
