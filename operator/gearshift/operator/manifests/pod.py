# SPDX-License-Identifier: Apache-2.0
"""One engine pod."""

from gearshift.api import names
from gearshift.api.base import Duration
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import Layout, Role
from gearshift.operator.errors import ChildRefused
from gearshift.operator.manifests import containers, meta, protected, security
from gearshift.operator.manifests.merge import MergeError, merge
from gearshift.operator.manifests.meta import Installation, Manifest, Owner
from gearshift.operator.manifests.revision import revision


def build_pod(owner: Owner, installation: Installation, ordinal: int, role: Role, layout: Layout) -> Manifest:
    """Manifest of the pod of an ordinal that starts with a role and a layout.

    Raises:
        ChildRefused: the template touches what it may not, or no engine image is known.
    """
    base = _base(owner, installation, ordinal, role, layout)
    template = owner.spec.pod.template
    try:
        merged = {
            **base,
            "metadata": merge(base["metadata"], template.get("metadata") or {}, "metadata"),
            "spec": merge(base["spec"], template.get("spec") or {}, "spec"),
        }
    except MergeError as problem:
        raise ChildRefused("TemplateRefused", f"spec.pod.template.{problem}") from problem
    broken = protected.violation(base, merged, template)
    if broken is not None:
        raise ChildRefused("TemplateRefused", broken)
    return merged


def pod_config(owner: Owner, installation: Installation, role: Role, layout: Layout) -> PodConfig:
    """What the sidecar of a pod is told."""
    spec = owner.spec
    router = names.router_name(owner.name)
    return PodConfig(
        namespace=owner.namespace,
        service=owner.name,
        model=spec.served_name,
        model_path=containers.model_path(spec),
        revision=spec.model.revision,
        engine=spec.engine.kind,
        device=spec.engine.device,
        accelerators=spec.pod.accelerators,
        layouts=spec.parallelism.layouts,
        initial_layout=layout,
        initial_role=role,
        disaggregated=spec.disaggregated,
        sequence_parallel_size=spec.parallelism.sequence_parallel_size,
        shift_threshold_tokens=spec.parallelism.shift_threshold_tokens,
        engine_args=spec.engine.args,
        engine_env={each.name: each.value for each in spec.engine.env if each.value is not None},
        drain_timeout=Duration(spec.policy.drain_timeout),
        operator_account=installation.operator_account,
        router_account=meta.account(owner.namespace, router),
    )


def _base(owner: Owner, installation: Installation, ordinal: int, role: Role, layout: Layout) -> Manifest:
    spec = owner.spec
    pod = meta.child(owner, "v1", "Pod", names.pod_name(owner.name, ordinal), names.COMPONENT_ENGINE)
    pod["metadata"]["labels"][names.LABEL_REVISION] = revision(spec)
    pod["spec"] = {
        "serviceAccountName": names.engine_account_name(owner.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": int(spec.policy.drain_timeout.seconds) + containers.POD_GRACE_SECONDS,
        "securityContext": security.pod_security(),
        "initContainers": [containers.sidecar(pod_config(owner, installation, role, layout), installation)],
        "containers": [containers.engine(spec, installation)],
        "volumes": containers.volumes(spec),
    }
    return pod
