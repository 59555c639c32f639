# SPDX-License-Identifier: Apache-2.0
"""What the router of a service is told."""

from dataclasses import replace

from gearshift.api import names
from gearshift.api.routerconfig import RouterLimits
from gearshift.operator.manifests.meta import Installation
from gearshift.operator.manifests.router import build_router
from gearshift.router.__main__ import load_config
from tests.unit.operator.builders import INSTALLATION, owner


def environment(installation: Installation) -> dict[str, str]:
    pod = build_router(owner(), installation)["spec"]["template"]["spec"]
    return {entry["name"]: entry.get("value", "") for entry in pod["containers"][0]["env"]}


def test_the_router_reads_its_service_and_the_limits_of_the_installation() -> None:
    limits = RouterLimits.model_validate({"maxConnections": "77", "queueTimeout": "5s"})
    config = load_config(environment(replace(INSTALLATION, router_limits=limits)))
    assert (config.namespace, config.service, config.service_uid, config.model) == ("prod", "chat", "uid-1", "llama")
    assert (config.max_connections, config.queue_timeout, config.max_in_flight) == (77, "5s", 4096)


def test_a_router_ignores_what_only_a_newer_operator_says() -> None:
    text = environment(INSTALLATION)[names.ENV_ROUTER_CONFIG]
    assert load_config({names.ENV_ROUTER_CONFIG: text[:-1] + ',"maxDreams":1}'}) == load_config(
        {names.ENV_ROUTER_CONFIG: text}
    )


def test_its_life_is_probed_where_clients_cannot_take_all_connections() -> None:
    container = build_router(owner(), INSTALLATION)["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"]["port"] == names.PORT_ROUTER_METRICS
