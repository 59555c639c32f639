# SPDX-License-Identifier: Apache-2.0
"""Reasons, CamelCase, that machines compare: one place, so that status, events, metrics and errors say the same."""

from typing import Final

# Refusals of the sidecar's control API (`gearshift.api.wire.ControlError.reason`).
UNAUTHORIZED: Final = "Unauthorized"  # 401: no bearer token, or not a valid one
FORBIDDEN: Final = "Forbidden"  # 403: a valid token of an account that may not do this
AUTH_UNAVAILABLE: Final = "AuthUnavailable"  # 503: the API server can't be asked and this token was never verified
BAD_REQUEST: Final = "BadRequest"  # 400: the body is not what the route takes
NOT_FOUND: Final = "NotFound"  # 404
STALE_FENCING_TOKEN: Final = "StaleFencingToken"  # 409: a newer leader has spoken
STALE_EPOCH: Final = "StaleEpoch"  # 409: the pod has changed since the order was decided
TRANSITION_IN_FLIGHT: Final = "TransitionInFlight"  # 409: one at a time
NOT_SERVING: Final = "NotServing"  # 409: only a pod that serves can be changed
ID_REUSED: Final = "IdReused"  # 409: the id belongs to another order
NOT_CAPABLE: Final = "NotCapable"  # 422: this pod can't do that
NO_CHANGE: Final = "NoChange"  # 422: it is so already

# How a transition ended (`gearshift.api.wire.TransitionStatus.reason`).
VERIFIED: Final = "Verified"
DRAIN_TIMEOUT: Final = "DrainTimeout"
SWITCH_FAILED: Final = "SwitchFailed"
VERIFICATION_FAILED: Final = "VerificationFailed"
ROLLBACK_FAILED: Final = "RollbackFailed"
ENGINE_LOST: Final = "EngineLost"
POD_TERMINATING: Final = "PodTerminating"
SIDECAR_RESTARTED: Final = "SidecarRestarted"
START_REFUSED: Final = "StartRefused"

# Policy: why a plan acts.
# The service has fewer pods than its spec asks for, so one is created.
POD_MISSING: Final = "PodMissing"
# A pod has ended for good (phase Failed or Succeeded), so it is deleted and replaced.
POD_FAILED: Final = "PodFailed"
# The node of a pod is gone, so the pod is deleted by force and replaced.
NODE_LOST: Final = "NodeLost"
# A pod was made from an older spec, so it is replaced.
ROLLOUT: Final = "Rollout"
# The service has more pods than its spec asks for, so the named one is drained and deleted.
SCALE_DOWN: Final = "ScaleDown"
# Prefill is under more pressure than decode, beyond the band, for long enough.
PREFILL_PRESSURE: Final = "PrefillPressure"
# Decode is under more pressure than prefill, beyond the band, for long enough.
DECODE_PRESSURE: Final = "DecodePressure"
# Pods carry more as Unified ones than split into Prefill and Decode, or carry the load with ease.
DISAGGREGATION_LOSES: Final = "DisaggregationLoses"
# Pods carry more when they are split into Prefill and Decode.
DISAGGREGATION_PAYS: Final = "DisaggregationPays"
# KV caches take too long from Prefill to Decode pods, so pods become Unified.
SLOW_TRANSFERS: Final = "SlowTransfers"
# Prompts delay the tokens of Unified pods beyond the objective, so they are split into Prefill and Decode.
INTERFERENCE: Final = "Interference"
# A role is hot while a pod of it starts, so a pod of another role that has slack stands in for it.
BRIDGE: Final = "Bridge"
# The pod that a bridge stood in for serves, so the bridge goes back to its role.
BRIDGE_OVER: Final = "BridgeOver"
# A role has fewer pods than its floor or more than its ceiling, so a pod changes role.
ROLE_BOUNDS: Final = "RoleBounds"
# Requests wait for compute, so pods take the layout with the most throughput.
QUEUEING: Final = "Queueing"
# Load is light, so pods take the layout with the lowest latency.
LIGHT_LOAD: Final = "LightLoad"
# One of the allowed layouts is the best at any load, so pods take it.
PREFERRED_LAYOUT: Final = "PreferredLayout"
# The role of a pod has a layout of its own in the spec, and the pod has another one.
ROLE_LAYOUT: Final = "RoleLayout"
# A pod in layout Shift has another threshold than its spec, so it takes that one.
SHIFT_THRESHOLD: Final = "ShiftThreshold"
# ``spec.override`` orders it.
OVERRIDE: Final = "Override"

# Policy: why a plan holds; TransitionInFlight and NotCapable, above, mean there what they mean to a sidecar.
# Nothing is to be done.
STEADY: Final = "Steady"
# ``policy.actuation`` is Advisory: the proposal is only reported.
ADVISORY: Final = "Advisory"
# ``policy.actuation`` is Approve and no one has approved this plan's id.
AWAITING_APPROVAL: Final = "AwaitingApproval"
# The hold annotation is set: nothing that takes a healthy pod out of service acts.
HUMAN_HOLD: Final = "HumanHold"
# Pods of an older spec are being replaced; layouts and roles keep still until then.
ROLLOUT_IN_PROGRESS: Final = "RolloutInProgress"
# The next pod of an older spec is replaced once every other pod serves.
ROLLOUT_WAITING: Final = "RolloutWaiting"
# No performance model knows what a pod can do, so whether to split roles can't be judged; they stay as they are.
RATES_UNKNOWN: Final = "RatesUnknown"
# A signal that the decision needs is unknown; the message names the signal, the query and the cause.
METRICS_MISSING: Final = "MetricsMissing"
# No pod serves, so there is nothing to judge load by.
NO_SERVING_PODS: Final = "NoServingPods"
# The decision has been wanted, but not yet for long enough.
EVIDENCE_SHORT: Final = "EvidenceShort"
# The operator has watched this service for less than one window; nothing flips, shifts or shrinks.
RESTART_HOLD: Final = "RestartHold"
# The pod has not kept its layout and role for ``policy.dwell`` yet.
DWELL: Final = "Dwell"
# The pod has not kept its layout and role for five times as long as such changes take yet.
TRANSITION_COST: Final = "TransitionCost"
# The service's last transition ended less than ``policy.cooldown`` ago.
COOLDOWN: Final = "Cooldown"
# The change would leave a role below its floor.
ROLE_FLOOR: Final = "RoleFloor"
# The change would take a role above its ceiling.
ROLE_CEILING: Final = "RoleCeiling"
# The change would leave the service unable to serve a phase that it serves now.
CAPACITY_KEPT: Final = "CapacityKept"
# The pods that would remain were seen to saturate below the present demand, so they keep what they have.
KNOWN_CAPACITY: Final = "KnownCapacity"
# Transitions of this kind have failed lately; the next try waits, longer after each failure.
BACKOFF: Final = "Backoff"
# This very change of this pod has failed in a way that another try would not mend; it needs a new pod or a human.
TERMINAL_FAILURE: Final = "TerminalFailure"
# The change would undo one of the last two minutes, and what speaks for it was not all measured after that one.
UNDOES: Final = "Undoes"
# The service has had ``policy.maxTransitionsPerHour`` transitions within the last hour.
HOURLY_LIMIT: Final = "HourlyLimit"
# More pods are wanted than ``policy.maxAccelerators``, or the namespace's budget, has accelerators for.
BUDGET_EXHAUSTED: Final = "BudgetExhausted"
# The plan was approved, and the approval has expired.
APPROVAL_EXPIRED: Final = "ApprovalExpired"
# Requests wait for KV cache, not for compute; another layout would not give them more of it for certain.
KV_BOUND: Final = "KvBound"

# Operator: reasons of conditions. AwaitingApproval, TransitionInFlight and NoServingPods mean what they mean above.
ACCEPTED: Final = "Accepted"  # SpecValid: the spec can be served
SPEC_INVALID: Final = "SpecInvalid"  # the spec can't be served; nothing is deleted and what runs goes on
TEMPLATE_REFUSED: Final = "TemplateRefused"  # spec.pod.template touches what it may not
NO_ENGINE_IMAGE: Final = "NoEngineImage"  # neither the spec nor the operator names an engine image
POD_REFUSED: Final = "PodRefused"  # the API server refuses the pods that the spec asks for
CHILD_CONFLICT: Final = "ChildConflict"  # an object of that name belongs to someone else
CHILD_REFUSED: Final = "ChildRefused"  # the API server refuses a child object
PREDECESSOR: Final = "PredecessorLeaving"  # what an earlier service of the same name left behind is not gone yet
PROGRESSING: Final = "Progressing"  # Stalled=False: nothing stands in the way
UP_TO_DATE: Final = "UpToDate"  # Reconciling=False: pods and children are as the spec asks
SCALING: Final = "Scaling"  # pods are created or deleted
ROLLING_OUT: Final = "RollingOut"  # pods of an older spec are being replaced
PODS_STARTING: Final = "PodsStarting"  # pods exist and do not serve yet
PODS_SERVING: Final = "PodsServing"  # every pod that the spec asks for serves
PODS_MISSING: Final = "PodsMissing"  # fewer pods than the spec asks for
ROUTER_STARTING: Final = "RouterStarting"  # the router's Deployment has no available pod
ROLE_UNSERVED: Final = "RoleUnserved"  # a role has fewer serving pods than its floor
SERVING: Final = "Serving"  # Ready: requests are served as the spec asks
SCALED_TO_ZERO: Final = "ScaledToZero"  # the spec asks for no pods
CONVERGED: Final = "Converged"  # layouts or roles are what the policy wants
DIVERGED: Final = "Diverged"  # layouts or roles are not what an override or the spec asks for yet
QUIET: Final = "Quiet"  # Shifting=False
EXTERNALLY_MANAGED: Final = "ExternallyManaged"  # ScalingActive=False: someone else owns the number of pods
FIXED: Final = "Fixed"  # ScalingActive=False: the spec leaves the number of pods no room
SCALING_BOUNDS: Final = "WithinBounds"  # ScalingActive=True: the policy scales between floor and max
NOT_HELD: Final = "NotHeld"  # Held=False
METRICS_FRESH: Final = "MetricsFresh"
METRICS_NOT_READ: Final = "MetricsNotRead"

# Operator: reasons of events.
POD_CREATED: Final = "PodCreated"
POD_DELETED: Final = "PodDeleted"
TRANSITION_STARTED: Final = "TransitionStarted"
TRANSITION_COMMITTED: Final = "TransitionCommitted"
TRANSITION_ROLLED_BACK: Final = "TransitionRolledBack"
TRANSITION_FAILED: Final = "TransitionFailed"
TRANSITION_REFUSED: Final = "TransitionRefused"
ANNOTATION_UNREADABLE: Final = "AnnotationUnreadable"  # an annotation that a human has set can't be read
POD_LOST: Final = "PodLost"  # the pod of a running transition is gone
TRANSITION_OVERDUE: Final = "TransitionOverdue"  # a transition has not ended within the time that any may take
TRANSITION_FORGOTTEN: Final = "TransitionForgotten"  # a sidecar took an order and then knew nothing of it
