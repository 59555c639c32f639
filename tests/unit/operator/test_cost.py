# SPDX-License-Identifier: Apache-2.0
"""What looks cost decides how often quiet services are looked at."""

from gearshift.operator.cost import Cost


def measured(look_seconds: float, looks: int = 1000) -> Cost:
    """Cost after looks that take the processor for ``look_seconds`` each."""
    spent = [0.0]
    cost = Cost(lambda: spent[0])
    for _ in range(looks):
        spent[0] += look_seconds
        cost.looked()
    return cost


def test_nothing_is_held_back_before_it_is_known_what_a_look_costs() -> None:
    assert measured(1.0, looks=99).round_seconds(1000) == 0.0


def test_a_round_takes_longer_the_more_services_there_are_and_the_more_a_look_costs() -> None:
    few, many, dear = (measured(cost).round_seconds(n) for cost, n in ((0.003, 10), (0.003, 1000), (0.006, 1000)))
    assert (round(few, 3), round(many, 3), round(dear, 3)) == (0.1, 10.0, 20.0)


def test_an_expensive_start_makes_no_service_wait_long_and_is_forgotten() -> None:
    spent = [100.0]
    cost = Cost(lambda: spent[0])
    spent[0] += 50.0
    rounds = []
    for _ in range(2000):
        spent[0] += 0.003
        cost.looked()
        rounds.append(cost.round_seconds(1000))
    assert max(rounds[:450]) == 30.0
    assert rounds[-1] < 10.1
