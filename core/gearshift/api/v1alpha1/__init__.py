# SPDX-License-Identifier: Apache-2.0
"""``InferenceService`` of ``gearshift.dev/v1alpha1`` as pydantic models; the CRD is generated from them."""

from gearshift.api.v1alpha1.inferenceservice import InferenceService, ObjectMeta
from gearshift.api.v1alpha1.policyspec import Objectives, Override, Policy
from gearshift.api.v1alpha1.spec import EngineSpec, InferenceServiceSpec, ModelSpec, Parallelism, PodSpec, RoleSpec
from gearshift.api.v1alpha1.status import InferenceServiceStatus

__all__ = [
    "EngineSpec",
    "InferenceService",
    "InferenceServiceSpec",
    "InferenceServiceStatus",
    "ModelSpec",
    "ObjectMeta",
    "Objectives",
    "Override",
    "Parallelism",
    "PodSpec",
    "Policy",
    "RoleSpec",
]
