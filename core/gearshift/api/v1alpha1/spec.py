# SPDX-License-Identifier: Apache-2.0
"""Spec of an ``InferenceService``: what a user allows, never what the operator decides."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from gearshift.api.base import FrozenModel
from gearshift.api.v1alpha1 import specrules
from gearshift.api.v1alpha1.policyspec import Override, Policy
from gearshift.api.v1alpha1.rules import check, schema
from gearshift.api.v1alpha1.scalingspec import RouterSpec, Scaling
from gearshift.api.vocabulary import Device, EngineKind, Layout, Role

DnsName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=253)]


class ModelSpec(FrozenModel):
    """Which model is served, and under what name."""

    uri: str = Field(
        pattern=r"^(hf://[\w.-]+/[\w.-]+|pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[\w./-]*)?|file:///[\w./-]+)$",
        max_length=512,
        description="hf://ORG/MODEL (a hub id that the engine resolves), pvc://CLAIM/PATH (a claim, mounted read-only) "
        "or file:///PATH (in the engine container).",
    )
    revision: str | None = Field(
        default=None, pattern=r"^[\w./-]+$", max_length=128, description="Revision of the model on the hub."
    )
    served_name: str | None = Field(
        default=None,
        pattern=r"^[\w./:-]+$",
        max_length=128,
        description="Model name that clients use; the last part of the uri when left out.",
    )


class KeySelector(FrozenModel):
    """A key of a Secret or a ConfigMap of the same namespace."""

    name: DnsName
    key: str = Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)


class EnvSource(FrozenModel):
    """Where the value of an environment variable comes from."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.ENV_SOURCE))

    secret_key_ref: KeySelector | None = None
    config_map_key_ref: KeySelector | None = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.ENV_SOURCE, self)
        return self


class EnvVar(FrozenModel):
    """An environment variable of the engine."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.ENV))

    name: EnvName
    value: str | None = Field(default=None, max_length=4096)
    value_from: EnvSource | None = None

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.ENV, self)
        return self


class EngineSpec(FrozenModel):
    """What runs in the engine container."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.ENGINE))

    kind: EngineKind = Field(
        default=EngineKind.VLLM, description="VLLM, or Simulated: same interfaces, modelled times, no accelerator."
    )
    device: Device = Field(
        default=Device.CUDA, description="CUDA requests GPUs from the node; CPU runs the ranks on processor cores."
    )
    image: str | None = Field(
        default=None,
        pattern=r"^[\w.:/@-]+$",
        max_length=512,
        description="Engine image; the operator's default when left out.",
    )
    args: list[Annotated[str, Field(max_length=1024)]] = Field(
        default=[],
        max_length=64,
        description="More arguments for the engine. Those that the operator owns are refused.",
    )
    env: list[EnvVar] = Field(
        default=[],
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.ENGINE, self)
        return self


class PodSpec(FrozenModel):
    """The shape of one pod."""

    accelerators: Literal[1, 2, 4, 8] = Field(
        default=8, description="Accelerators of one pod; attention heads are divided evenly over them."
    )
    template: dict[str, Any] = Field(
        default={},
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
        description="Strategic-merge pod template over what the operator makes (tolerations, volumes, resources, "
        "security); never over what makes it work.",
    )


class Parallelism(FrozenModel):
    """Which layouts a pod may take."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.PARALLELISM))

    layouts: list[Layout] = Field(
        default=[Layout.TP],
        min_length=1,
        max_length=4,
        json_schema_extra={"x-kubernetes-list-type": "set"},
        description="Layouts that the policy may choose from.",
    )
    initial: Layout | None = Field(default=None, description="Layout of a new pod; the first of layouts when left out.")
    sequence_parallel_size: Literal[2, 4, 8] | None = Field(
        default=None, description="Ranks of one sequence-parallel group; all accelerators when left out."
    )
    shift_threshold_tokens: int | None = Field(
        default=None,
        ge=0,
        le=1_048_576,
        description="Scheduled tokens of an engine step above which layout Shift runs sequence parallel.",
    )

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.PARALLELISM, self)
        return self

    @property
    def start(self) -> Layout:
        """Layout of a new pod."""
        return self.initial or self.layouts[0]


class RoleSpec(FrozenModel):
    """How many pods may serve in one role."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.ROLE))

    name: Role
    replicas: int = Field(
        default=1, ge=0, le=1000, description="Pods in this role at start; the policy moves it between min and max."
    )
    min: int | None = Field(default=None, ge=0, le=1000, description="Floor; 1 (0 when replicas is 0) when left out.")
    max: int | None = Field(default=None, ge=0, le=1000, description="Ceiling; the number of all pods when left out.")
    layout: Layout | None = Field(
        default=None, description="Layout of the pods in this role; chosen by load for the service when left out."
    )

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.ROLE, self)
        return self

    @property
    def floor(self) -> int:
        """Pods that this role never goes below."""
        return self.min if self.min is not None else min(1, self.replicas)


class InferenceServiceSpec(FrozenModel):
    """What to serve, on what, and within which bounds the operator may change it."""

    model_config = ConfigDict(json_schema_extra=schema(specrules.SPEC))

    model: ModelSpec
    engine: EngineSpec = EngineSpec()
    pod: PodSpec = PodSpec()
    parallelism: Parallelism = Parallelism()
    replicas: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="Pods over all roles (kubectl scale writes it); the sum of the roles' replicas when left out.",
    )
    roles: list[RoleSpec] = Field(
        default=[RoleSpec(name=Role.UNIFIED)],
        min_length=1,
        max_length=3,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        description="Roles of the service.",
    )
    scaling: Scaling = Scaling()
    router: RouterSpec = RouterSpec()
    policy: Policy = Policy()
    override: Override | None = Field(
        default=None, description="A human's order; it wins over the policy until it expires."
    )

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check(specrules.SPEC, self)
        return self

    @property
    def served_name(self) -> str:
        """Model name that clients use."""
        return self.model.served_name or self.model.uri.rstrip("/").rsplit("/", 1)[-1]

    @property
    def disaggregated(self) -> bool:
        """Prefill and decode are split over pods."""
        return any(role.name is not Role.UNIFIED for role in self.roles)

    def role(self, name: Role) -> RoleSpec | None:
        """The entry of a role, or None."""
        return next((role for role in self.roles if role.name is name), None)
