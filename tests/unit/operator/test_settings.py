# SPDX-License-Identifier: Apache-2.0
"""Flags, environment variables, and errors that name both."""

import pytest

from gearshift.operator.errors import SettingsError
from gearshift.operator.settings import parse


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    environment = {"GEARSHIFT_OPERATOR_IMAGE": "from-variable:1", "GEARSHIFT_OPERATOR_TICK_SECONDS": "2"}
    settings = parse(["--tick-seconds", "3"], environment)
    assert (settings.image, settings.tick_seconds, settings.metrics_port) == ("from-variable:1", 3.0, 9403)


def test_namespaces_are_a_list_with_commas() -> None:
    assert parse(["--image", "x", "--namespaces", "a, b"], {}).namespaces == ("a", "b")
    assert parse(["--image", "x"], {}).namespaces == ()


def test_budgets_are_pairs_with_commas() -> None:
    settings = parse(["--image", "x", "--namespace-accelerators", "team-a=16, *=64"], {})
    assert settings.namespace_accelerators == {"team-a": 16, "*": 64}
    assert parse(["--image", "x"], {}).namespace_accelerators == {}


def test_limits_of_routers_are_pairs_with_commas() -> None:
    limits = parse(["--image", "x", "--router-limits", "maxQueue=0, queueTimeout=5s"], {}).router_limits
    assert (limits.max_queue, limits.queue_timeout.seconds, limits.max_connections) == (0, 5.0, 8192)


def test_kubeconfig_falls_back_to_the_usual_variable() -> None:
    assert parse(["--image", "x"], {"KUBECONFIG": "/k"}).kubeconfig == "/k"
    assert parse(["--image", "x", "--kubeconfig", "/f"], {"KUBECONFIG": "/k"}).kubeconfig == "/f"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--image (GEARSHIFT_OPERATOR_IMAGE): Field required"),
        (["--image", "x", "--metrics-port", "70000"], "--metrics-port (GEARSHIFT_OPERATOR_METRICS_PORT) '70000'"),
        (["--image", "x", "--tick-seconds", "nan"], "--tick-seconds (GEARSHIFT_OPERATOR_TICK_SECONDS) 'nan'"),
        (["--image", "x", "--prometheus-url", "file:///etc"], "--prometheus-url"),
        (["--image", "x", "--prometheus-url", "http://user:pw@host"], "--prometheus-url"),
        (["--image", "x", "--namespaces", "a,B"], "'B' is not a namespace"),
        (["--image", "x", "--namespace-accelerators", "a=x"], "--namespace-accelerators"),
        (["--image", "x", "--namespace-accelerators", "a=-1"], "a=-1 is below 0"),
        (["--image", "x", "--namespace-accelerators", "A_b=1"], "'A_b' is not a namespace"),
        (["--image", "x", "--router-limits", "maxQueue=-1"], "(GEARSHIFT_OPERATOR_ROUTER_LIMITS) maxQueue '-1'"),
        (["--image", "x", "--router-limits", "maxQueues=1"], "maxQueues '1': Extra inputs are not permitted"),
        (["--image", "x", "--router-limits", "queueTimeout=5"], "queueTimeout '5'"),
        (["--image", "x y"], "--image (GEARSHIFT_OPERATOR_IMAGE) 'x y'"),
        (["--image", "x", "--log-level", "LOUD"], "--log-level (GEARSHIFT_OPERATOR_LOG_LEVEL) 'LOUD'"),
    ],
)
def test_a_bad_value_is_named_with_its_flag(arguments: list[str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(arguments, {})
    assert words in str(caught.value)
