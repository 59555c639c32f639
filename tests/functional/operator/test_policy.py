# SPDX-License-Identifier: Apache-2.0
"""Decisions from metrics: proposed, approved by a human, carried out; and none without metrics."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gscluster.fast import FastCluster
from tests.functional.operator.world import Operator, Space, operator, until

pytestmark = [pytest.mark.functional, pytest.mark.usefixtures("leader")]

QUICK = {"window": "5s", "dwell": "1s", "cooldown": "1s"}
LAYOUTS = {"parallelism": {"layouts": ["TP", "DP"]}}
BUSY = {"waiting": 400.0, "running": 200.0, "kv_cache": 0.3, "prompt": 9000.0, "generation": 900.0, "first_token": 9.0}


class Prometheus:
    """Answers every instant query with the number that a test has set for the series in it, or with no series."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        world = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query = self.rfile.read(int(self.headers["Content-Length"])).decode()
                found = [value for name, value in world.values.items() if name in query]
                result = [{"metric": {}, "value": [time.time(), str(found[0])]}] if found else []
                body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """One for all tests here."""
    one = Prometheus()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture(scope="module")
def leader(
    cluster: FastCluster, prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """An operator that reads it."""
    with operator(cluster, tmp_path_factory.mktemp("operator"), prometheus_url=prometheus.url) as one:
        yield one


def test_without_metrics_nothing_is_proposed(space: Space, prometheus: Prometheus) -> None:
    prometheus.values = {}
    space.apply(**LAYOUTS, policy=QUICK)
    (sidecar,) = space.serve(1).values()
    until(lambda: space.condition("MetricsAvailable").get("reason") == "MetricsMissing", "the metrics to be missed")
    until(lambda: space.status()["lastDecision"]["reason"] == "MetricsMissing", "the decision to say so", 120)
    assert sidecar.orders == []


def test_a_query_of_the_user_decides_in_the_place_of_the_own_one(space: Space, prometheus: Prometheus) -> None:
    prometheus.values = {name: value for name, value in BUSY.items() if name != "waiting"} | {"gateway_queue": 400.0}
    policy = {**QUICK, "actuation": "Approve"}

    def ask(query: str) -> None:
        space.apply(**LAYOUTS, policy={**policy, "queries": [{"signal": "Waiting", "query": query}]})

    space.apply(**LAYOUTS, policy=policy)
    (sidecar,) = space.serve(1).values()
    until(lambda: space.status()["lastDecision"]["reason"] == "MetricsMissing", "the queue to be missed", 120)
    ask('sum(gateway_queue{upstream="$service"})')
    until(lambda: space.condition("LayoutConverged").get("reason") == "AwaitingApproval", "a proposal", 120)
    ask("sum(unheard_of)")
    until(lambda: "unheard_of" in space.status()["lastDecision"].get("message", ""), "the query to be named", 120)
    message = space.status()["lastDecision"]["message"]
    assert message.startswith("waiting is unknown: no series of the last")
    assert f'unheard_of{{namespace="{space.name}"}}' in message
    assert sidecar.orders == []


def test_a_proposal_waits_for_its_approval_and_then_acts(space: Space, prometheus: Prometheus) -> None:
    prometheus.values = dict(BUSY)
    space.apply(**LAYOUTS, policy={**QUICK, "actuation": "Approve"})
    (sidecar,) = space.serve(1).values()
    until(lambda: space.condition("LayoutConverged").get("reason") == "AwaitingApproval", "a proposal", 120)
    decision = space.status()["lastDecision"]
    assert (decision["action"], decision["reason"]) == ("Hold", "AwaitingApproval")
    assert sidecar.orders == []
    plan = decision["plan"]
    space.cluster.kubectl("annotate", "gsvc", "chat", f"gearshift.dev/approve={plan}", "-n", space.name)
    until(lambda: space.status().get("transitionHistory"), "the approved transition to end", 120)
    (order,) = sidecar.orders
    assert (order.id, order.to) == (f"{plan}-chat-0", "DP")


def test_an_approval_that_is_over_approves_nothing(space: Space, prometheus: Prometheus) -> None:
    prometheus.values = dict(BUSY)
    space.apply(**LAYOUTS, policy={**QUICK, "actuation": "Approve"})
    (sidecar,) = space.serve(1).values()
    until(lambda: space.condition("LayoutConverged").get("reason") == "AwaitingApproval", "a proposal", 120)
    value = f"gearshift.dev/approve={space.status()['lastDecision']['plan']}@2020-01-01T00:00:00Z"
    space.cluster.kubectl("annotate", "gsvc", "chat", value, "-n", space.name)
    until(lambda: space.status()["lastDecision"]["reason"] == "ApprovalExpired", "the end of the approval to be told")
    assert sidecar.orders == []


def test_demand_is_told_in_status_and_metrics(space: Space, prometheus: Prometheus, leader: Operator) -> None:
    prometheus.values = {"cached": 0.0, **BUSY}
    space.apply(policy=QUICK)
    space.serve(1)
    until(lambda: space.status().get("load", {}).get("decode", {}).get("demandTokensPerSecond") == 900, "the demand")
    assert space.status()["load"]["prefill"]["demandTokensPerSecond"] == 9000
    assert space.status()["load"]["capacityFrom"] == "profile llama-3-70b-fp8-h200"
    labels = f'namespace="{space.name}",phase="Decode",service="chat"'
    until(lambda: f"demand_tokens_per_second{{{labels}}} 900.0" in leader.metrics(), "the gauge")


def test_auto_acts_by_itself_unless_the_service_is_held(space: Space, prometheus: Prometheus) -> None:
    prometheus.values = dict(BUSY)
    space.apply(**LAYOUTS, policy=QUICK)
    space.cluster.kubectl("annotate", "gsvc", "chat", "gearshift.dev/hold=true", "-n", space.name)
    (sidecar,) = space.serve(1).values()
    until(lambda: space.status()["lastDecision"]["reason"] == "HumanHold", "the hold to be told", 120)
    assert sidecar.orders == []
    space.cluster.kubectl("annotate", "gsvc", "chat", "gearshift.dev/hold-", "-n", space.name)
    until(lambda: sidecar.orders, "the transition", 120)
    assert sidecar.orders[0].to == "DP"
