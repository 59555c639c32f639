# SPDX-License-Identifier: Apache-2.0
"""The whole object."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from gearshift.api.base import TolerantModel
from gearshift.api.v1alpha1.spec import InferenceServiceSpec
from gearshift.api.v1alpha1.status import InferenceServiceStatus


class ObjectMeta(TolerantModel):
    """The metadata that the operator reads."""

    name: str
    namespace: str
    uid: str
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class InferenceService(TolerantModel):
    """An ``InferenceService`` as the API server stores it."""

    api_version: Literal["gearshift.dev/v1alpha1"] = "gearshift.dev/v1alpha1"
    kind: Literal["InferenceService"] = "InferenceService"
    metadata: ObjectMeta
    spec: InferenceServiceSpec
    status: InferenceServiceStatus = Field(default_factory=InferenceServiceStatus)

    @classmethod
    def parse(cls, body: dict[str, Any]) -> "InferenceService":
        """Read an object as the API server returns it.

        Raises:
            pydantic.ValidationError: the spec is not servable; its message names field and value.
        """
        return cls.model_validate(body)
