# SPDX-License-Identifier: Apache-2.0
"""The part of the spec that says who owns a number of pods: that of the engines, and that of the router."""

from typing import Self

from pydantic import ConfigDict, Field, model_validator

from gearshift.api.base import FrozenModel
from gearshift.api.v1alpha1 import specrules
from gearshift.api.v1alpha1.rules import check, schema
from gearshift.api.vocabulary import ScaleOwner


class Scaling(FrozenModel):
    """Owner of the number of engine pods."""

    owner: ScaleOwner | None = Field(
        default=None,
        description="Who says how many engine pods there are. Gearshift: the policy, within min and max of the one "
        "role. External: whoever writes replicas or the scale subresource, such as HPA or KEDA. Left out: External "
        "once replicas is set, else Gearshift where the one role has a max above its floor.",
    )
    standby: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Warm pods: so many more than demand asks for serve too, up to max, so that growth need not wait "
        "for a start-up.",
    )


class RouterScaling(FrozenModel):
    """Owner of the number of router pods."""

    owner: ScaleOwner = Field(
        default=ScaleOwner.GEARSHIFT,
        description="Gearshift: router.replicas. External: whoever scales the router's Deployment, such as HPA or "
        "KEDA; the operator then leaves its replicas alone.",
    )


class RouterSpec(FrozenModel):
    """The router of the service."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.ROUTER))

    replicas: int | None = Field(
        default=None, ge=1, le=64, description="Router pods; the operator's setting when left out."
    )
    scaling: RouterScaling = RouterScaling()

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.ROUTER, self)
        return self
