# SPDX-License-Identifier: Apache-2.0
"""Warm standby: pods beyond the demand that serve too, so that growth need not wait for a start-up."""

from dataclasses import replace

from gearshift.policy.sizing import Sizing


def with_standby(found: Sizing, spare: int) -> Sizing:
    """The sizing with ``spare`` pods more.

    | yardstick | up | down | carry |
    |---|---|---|---|
    | known | ``spare`` more | ``spare`` more | as it is: a standby need not be busy |
    | none: pods are counted from those that there are | at least 1 + ``spare`` | at least 1 + ``spare`` | as it is |
    """
    if found.sample is not None:
        return replace(found, up=found.up + spare, down=found.down + spare)
    return replace(found, up=max(found.up, 1 + spare), down=max(found.down, 1 + spare))
