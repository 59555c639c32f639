# SPDX-License-Identifier: Apache-2.0
"""The words of the product as types: layout, role, phase, kind of transition."""

from enum import StrEnum


class Layout(StrEnum):
    """How the accelerators of one pod share the work."""

    TP = "TP"  # tensor parallel over all accelerators
    SP = "SP"  # Ulysses sequence parallel, optionally x TP
    DP = "DP"  # independent replicas, one an accelerator
    SHIFT = "Shift"  # SP or TP, chosen for every engine step by its number of scheduled tokens


class Role(StrEnum):
    """Which phase of a request a pod serves."""

    UNIFIED = "Unified"
    PREFILL = "Prefill"
    DECODE = "Decode"


class EngineKind(StrEnum):
    """What runs in the engine container."""

    VLLM = "VLLM"
    SIMULATED = "Simulated"


class Device(StrEnum):
    """Accelerator family of the engine."""

    CUDA = "CUDA"
    CPU = "CPU"


class Actuation(StrEnum):
    """What becomes of a decision of the policy."""

    ADVISORY = "Advisory"  # reported only
    APPROVE = "Approve"  # acts once a human has named the plan's id
    AUTO = "Auto"  # acts


class ScaleOwner(StrEnum):
    """Who says how many pods there are."""

    GEARSHIFT = "Gearshift"
    EXTERNAL = "External"  # HPA, KEDA, kubectl scale, GitOps


class PodPhase(StrEnum):
    """State of a pod's transition machine. Only SERVING admits new requests."""

    STARTING = "Starting"
    SERVING = "Serving"
    DRAINING = "Draining"
    SWITCHING = "Switching"
    VERIFYING = "Verifying"
    PUBLISHING = "Publishing"
    ROLLING_BACK = "RollingBack"
    TERMINATING = "Terminating"
    FAILED = "Failed"
    UNKNOWN = "Unknown"  # never said by a sidecar: what a reader writes when it can't learn the phase


class TransitionKind(StrEnum):
    """What a transition changes."""

    LAYOUT = "Layout"
    ROLE = "Role"


class BridgePhase(StrEnum):
    """How far a bridge is: a pod that stands in, in another role, for one that starts."""

    GOING = "Going"  # on its way to the role
    STANDING = "Standing"  # serves in the role
    RETURNED = "Returned"  # serves in its own role again, before the other pod serves


class TransitionResult(StrEnum):
    """How a transition ended."""

    RUNNING = "Running"
    COMMITTED = "Committed"
    ROLLED_BACK = "RolledBack"
    FAILED = "Failed"


class MetricSignal(StrEnum):
    """What decisions read from Prometheus, each over ``policy.window``, as a spec names it."""

    WAITING = "Waiting"  # requests that wait for capacity, sum over pods
    RUNNING = "Running"  # requests in the batch, sum over pods
    KV_USAGE = "KvUsage"  # used share of the KV cache, mean over pods, 0..1
    REQUEST_RATE = "RequestRate"  # requests per second that get their first token
    PROMPT_TOKEN_RATE = "PromptTokenRate"  # per second
    GENERATION_TOKEN_RATE = "GenerationTokenRate"  # per second
    PREFIX_HIT_SHARE = "PrefixHitShare"  # of prompt tokens, those whose KV was there already, 0..1
    TRANSFERS_WAITING = "TransfersWaiting"  # requests whose KV cache is on its way from a prefill pod, sum over pods
    TTFT_P90 = "TtftP90"  # seconds
    ITL_P90 = "ItlP90"  # seconds


class QueryScope(StrEnum):
    """Pods that a query is about."""

    SERVICE = "Service"  # all
    UNIFIED = "Unified"  # those in that role
    PREFILL = "Prefill"
    DECODE = "Decode"

    @property
    def role(self) -> Role | None:
        """The role, or None for the whole service."""
        return None if self is QueryScope.SERVICE else Role(self.value)
