# SPDX-License-Identifier: Apache-2.0
"""The two containers of an engine pod and the volumes they share.

The engine container runs model code and holds no credentials; the sidecar holds the only token of the pod. They share
one emptyDir with the engine host's Unix socket.
"""

from typing import Final

from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.v1alpha1.spec import EnvVar
from gearshift.api.vocabulary import Device, EngineKind, Layout
from gearshift.operator.errors import ChildRefused
from gearshift.operator.manifests import meta, security
from gearshift.operator.manifests.meta import Installation, Manifest

GPU_RESOURCE: Final = "nvidia.com/gpu"
MODEL_VOLUME: Final = "gearshift-model"
MODEL_DIR: Final = "/models"
SCRATCH_DIR: Final = "/scratch"  # home and caches of the engine
HOST_GRACE_SECONDS: Final = 15  # after draining, for the engine to stop
POD_GRACE_SECONDS: Final = 30  # after draining, for both containers to stop

_HOME: Final = {
    "HOME": SCRATCH_DIR,
    "USER": "gearshift",
    "LOGNAME": "gearshift",
    "TMPDIR": "/tmp",  # noqa: S108 - an emptyDir of this pod
    "XDG_CACHE_HOME": f"{SCRATCH_DIR}/cache",
    "XDG_CONFIG_HOME": f"{SCRATCH_DIR}/config",
    "HF_HOME": f"{SCRATCH_DIR}/huggingface",
    "VLLM_CACHE_ROOT": f"{SCRATCH_DIR}/vllm",
    "VLLM_CONFIG_ROOT": f"{SCRATCH_DIR}/vllm-config",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "TORCHINDUCTOR_CACHE_DIR": f"{SCRATCH_DIR}/inductor",
    "TRITON_CACHE_DIR": f"{SCRATCH_DIR}/triton",
}


def engine_image(spec: InferenceServiceSpec, installation: Installation) -> str:
    """Image of the engine container.

    Raises:
        ChildRefused: the spec names none and the operator has no default for this kind and device.
    """
    if spec.engine.image is not None:
        return spec.engine.image
    if spec.engine.kind is EngineKind.SIMULATED:
        return installation.image
    cuda = spec.engine.device is Device.CUDA
    default = installation.engine_image_cuda if cuda else installation.engine_image_cpu
    if default is None:
        which = f"{spec.engine.kind.value} on {spec.engine.device.value}"
        raise ChildRefused(
            "NoEngineImage", f"spec.engine.image: needed, since the operator has no default image for {which}"
        )
    return default


def engine(spec: InferenceServiceSpec, installation: Installation) -> Manifest:
    """Container ``engine``: all accelerators of the pod, no token."""
    grace = int(spec.policy.drain_timeout.seconds) + HOST_GRACE_SECONDS
    own = [meta.env(name, value) for name, value in _HOME.items()]
    asked = {variable.name for variable in spec.engine.env}
    container: Manifest = {
        "name": names.CONTAINER_ENGINE,
        "image": engine_image(spec, installation),
        "imagePullPolicy": installation.image_pull_policy,
        "command": meta.python("gearshift.engine.host", "--grace-seconds", str(grace)),
        "ports": _engine_ports(spec),
        "env": [
            *(variable for variable in own if variable["name"] not in asked),
            meta.env_field("POD_IP", "status.podIP"),
            *(_env(variable) for variable in spec.engine.env if variable.name != "POD_IP"),
        ],
        "volumeMounts": [
            {"name": "gearshift-run", "mountPath": names.RUN_DIR},
            {"name": "gearshift-tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "gearshift-scratch", "mountPath": SCRATCH_DIR},
            {"name": "gearshift-shm", "mountPath": "/dev/shm"},  # noqa: S108
        ],
        "securityContext": security.container_security(),
    }
    if needs_gpus(spec):
        count = str(spec.pod.accelerators)
        container["resources"] = {"limits": {GPU_RESOURCE: count}, "requests": {GPU_RESOURCE: count}}
    if model_claim(spec) is not None:
        container["volumeMounts"].append({"name": MODEL_VOLUME, "mountPath": MODEL_DIR, "readOnly": True})
    return container


def _engine_ports(spec: InferenceServiceSpec) -> list[Manifest]:
    """One a resident engine, so that Prometheus finds each: the Simulated engine is one, vLLM one a layout family."""
    simulated = spec.engine.kind is EngineKind.SIMULATED
    residents = 1 if simulated else len({layout is Layout.DP for layout in spec.parallelism.layouts})
    return [
        meta.container_port(f"engine-{index}" if index else "engine", names.PORT_ENGINE + index)
        for index in range(residents)
    ]


def sidecar(config: PodConfig, installation: Installation) -> Manifest:
    """Native sidecar: an init container that keeps running, starts before the engine and stops after it."""
    return {
        "name": names.CONTAINER_SIDECAR,
        "image": installation.image,
        "imagePullPolicy": installation.image_pull_policy,
        "command": meta.python("gearshift.sidecar"),
        "restartPolicy": "Always",
        "ports": [
            meta.container_port("control", names.PORT_CONTROL),
            meta.container_port("metrics", names.PORT_SIDECAR_METRICS),
        ],
        "env": [
            meta.env(names.ENV_POD_CONFIG, config.model_dump_json(by_alias=True, exclude_none=True)),
            meta.env_field("POD_NAME", "metadata.name"),
            meta.env_field("POD_UID", "metadata.uid"),
            meta.env_field("POD_NAMESPACE", "metadata.namespace"),
            meta.env_field("POD_IP", "status.podIP"),
        ],
        "volumeMounts": [
            {"name": "gearshift-run", "mountPath": names.RUN_DIR},
            {"name": "gearshift-tmp", "mountPath": "/tmp", "subPath": "sidecar"},  # noqa: S108
            security.api_token_mount(),
        ],
        "startupProbe": meta.probe("/livez", names.PORT_SIDECAR_METRICS, periodSeconds=1, failureThreshold=60),
        "livenessProbe": meta.probe(
            "/livez", names.PORT_SIDECAR_METRICS, periodSeconds=10, timeoutSeconds=5, failureThreshold=3
        ),
        "readinessProbe": meta.probe(
            "/readyz", names.PORT_SIDECAR_METRICS, periodSeconds=2, timeoutSeconds=5, failureThreshold=2
        ),
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}},
        "securityContext": security.container_security(),
    }


def volumes(spec: InferenceServiceSpec) -> list[Manifest]:
    """Volumes of the pod."""
    found = [
        {"name": "gearshift-run", "emptyDir": {}},
        {"name": "gearshift-tmp", "emptyDir": {}},
        {"name": "gearshift-scratch", "emptyDir": {}},
        {"name": "gearshift-shm", "emptyDir": {"medium": "Memory"}},
        security.api_token_volume(),
    ]
    claim = model_claim(spec)
    if claim is not None:
        found.append({"name": MODEL_VOLUME, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    return found


def needs_gpus(spec: InferenceServiceSpec) -> bool:
    """The pod asks its node for GPUs."""
    return spec.engine.kind is EngineKind.VLLM and spec.engine.device is Device.CUDA


def model_claim(spec: InferenceServiceSpec) -> str | None:
    """PersistentVolumeClaim that holds the model, or None."""
    scheme, _, rest = spec.model.uri.partition("://")
    return rest.split("/", 1)[0] if scheme == "pvc" else None


def model_path(spec: InferenceServiceSpec) -> str:
    """Hub id, or path in the engine container, that the engine is started with."""
    scheme, _, rest = spec.model.uri.partition("://")
    if scheme == "pvc":
        inside = rest.partition("/")[2].strip("/")
        return f"{MODEL_DIR}/{inside}" if inside else MODEL_DIR
    return rest


def _env(variable: EnvVar) -> Manifest:
    if variable.value_from is None:
        return meta.env(variable.name, variable.value or "")
    return {"name": variable.name, "valueFrom": variable.value_from.dump()}
