# SPDX-License-Identifier: Apache-2.0
"""The rules of the spec, object by object."""

from typing import Any, Final

from gearshift.api.ownedargs import OWNED_ARGS, owned_args
from gearshift.api.v1alpha1.rules import Rule
from gearshift.api.vocabulary import EngineKind, Layout, Role, ScaleOwner

_SP_LAYOUTS: Final = (Layout.SP, Layout.SHIFT)

_SP_ALONE: Final = (
    "parallelism.layouts: engine.kind VLLM serves SP without TP and Shift; Shift chooses between TP and SP by itself"
)

_OWNED_CEL: Final = (  # the same as `gearshift.api.ownedargs.owned_args`
    "self.args.filter(a, [a.split('=')[0].split('.')[0].replace('_', '-')].exists(o, o.size() > 1 && o != '--' && ["
    + ", ".join(f"'{arg}'" for arg in OWNED_ARGS)
    + "].exists(p, p.startsWith(o))))"
)

_DIGITS = "['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']"


def _decimal(number: str) -> str:
    """CEL that prints an integer of 0..1000: ``string(int)`` has no bound that CEL's cost estimate would accept."""
    hundreds = f"({number} > 99 ? {_DIGITS}[{number} / 100] : '')"
    tens = f"({number} > 9 ? {_DIGITS}[{number} / 10 % 10] : '')"
    return f"({number} > 999 ? '1000' : {hundreds} + {tens} + {_DIGITS}[{number} % 10])"


ENV_SOURCE: Final = (
    Rule(
        cel="has(self.secretKeyRef) != has(self.configMapKeyRef)",
        message_cel="'valueFrom needs exactly one of secretKeyRef and configMapKeyRef'",
        holds=lambda s: (s.secret_key_ref is None) != (s.config_map_key_ref is None),
        message=lambda _: "valueFrom needs exactly one of secretKeyRef and configMapKeyRef",
    ),
)

ENV: Final = (
    Rule(
        cel="has(self.value) != has(self.valueFrom)",
        message_cel="'environment variable ' + self.name + ' needs exactly one of value and valueFrom'",
        holds=lambda e: (e.value is None) != (e.value_from is None),
        message=lambda e: f"environment variable {e.name} needs exactly one of value and valueFrom",
    ),
    Rule(
        cel="!self.name.startsWith('GEARSHIFT_POD_') && !self.name.startsWith('GEARSHIFT_ROUTER_')",
        message_cel="'environment variable ' + self.name + ' is set by the operator'",
        holds=lambda e: not e.name.startswith(("GEARSHIFT_POD_", "GEARSHIFT_ROUTER_")),
        message=lambda e: f"environment variable {e.name} is set by the operator",
    ),
)

ENGINE: Final = (
    Rule(
        cel=f"{_OWNED_CEL}.size() == 0",
        message_cel=f"'args: ' + {_OWNED_CEL}[0] + ' is set by Gearshift'",
        holds=lambda e: not owned_args(e.args),
        message=lambda e: f"args: {owned_args(e.args)[0]} is set by Gearshift",
    ),
)

PARALLELISM: Final = (
    Rule(
        cel="self.layouts.all(a, self.layouts.exists_one(b, b == a))",
        message_cel="'layouts: a layout is listed twice'",
        holds=lambda p: len(set(p.layouts)) == len(p.layouts),
        message=lambda _: "layouts: a layout is listed twice",
    ),
    Rule(
        cel="!has(self.initial) || self.initial in self.layouts",
        message_cel="'initial: ' + self.initial + ' is not one of layouts'",
        holds=lambda p: p.initial is None or p.initial in p.layouts,
        message=lambda p: f"initial: {p.initial} is not one of layouts",
    ),
    Rule(
        cel="!has(self.sequenceParallelSize) || self.layouts.exists(l, l in ['SP', 'Shift'])",
        message_cel="'sequenceParallelSize: ' + "
        + _decimal("self.sequenceParallelSize")
        + " + ' needs layout SP or Shift in layouts'",
        holds=lambda p: p.sequence_parallel_size is None or any(x in _SP_LAYOUTS for x in p.layouts),
        message=lambda p: f"sequenceParallelSize: {p.sequence_parallel_size} needs layout SP or Shift in layouts",
    ),
    Rule(
        cel="!has(self.shiftThresholdTokens) || 'Shift' in self.layouts",
        message_cel="'shiftThresholdTokens needs layout Shift in layouts'",
        holds=lambda p: p.shift_threshold_tokens is None or Layout.SHIFT in p.layouts,
        message=lambda _: "shiftThresholdTokens needs layout Shift in layouts",
    ),
)

ROLE: Final = (
    Rule(
        cel="!has(self.min) || !has(self.max) || self.min <= self.max",
        message_cel="'role ' + self.name + ': min ' + "
        + _decimal("self.min")
        + " + ' is above max ' + "
        + _decimal("self.max"),
        holds=lambda r: r.min is None or r.max is None or r.min <= r.max,
        message=lambda r: f"role {r.name}: min {r.min} is above max {r.max}",
    ),
    Rule(
        cel="!has(self.min) || self.min <= self.replicas",
        message_cel="'role ' + self.name + ': replicas ' + "
        + _decimal("self.replicas")
        + " + ' is below min ' + "
        + _decimal("self.min"),
        holds=lambda r: r.min is None or r.min <= r.replicas,
        message=lambda r: f"role {r.name}: replicas {r.replicas} is below min {r.min}",
    ),
    Rule(
        cel="!has(self.max) || self.replicas <= self.max",
        message_cel="'role ' + self.name + ': replicas ' + "
        + _decimal("self.replicas")
        + " + ' is above max ' + "
        + _decimal("self.max"),
        holds=lambda r: r.max is None or r.replicas <= r.max,
        message=lambda r: f"role {r.name}: replicas {r.replicas} is above max {r.max}",
    ),
)

POLICY: Final = (
    Rule(
        cel="duration(self.window) >= duration('5s') && duration(self.window) <= duration('1h')",
        message_cel="'window: ' + self.window + ' is not between 5s and 1h'",
        holds=lambda p: 5 <= p.window.seconds <= 3600,
        message=lambda p: f"window: {p.window} is not between 5s and 1h",
    ),
    Rule(
        cel="duration(self.drainTimeout) >= duration('1s') && duration(self.drainTimeout) <= duration('1h')",
        message_cel="'drainTimeout: ' + self.drainTimeout + ' is not between 1s and 1h'",
        holds=lambda p: 1 <= p.drain_timeout.seconds <= 3600,
        message=lambda p: f"drainTimeout: {p.drain_timeout} is not between 1s and 1h",
    ),
    Rule(
        cel="duration(self.dwell) <= duration('24h') && duration(self.cooldown) <= duration('24h')",
        message_cel="'dwell: ' + self.dwell + ' or cooldown: ' + self.cooldown + ' is above 24h'",
        holds=lambda p: p.dwell.seconds <= 86400 and p.cooldown.seconds <= 86400,
        message=lambda p: f"dwell: {p.dwell} or cooldown: {p.cooldown} is above 24h",
    ),
    Rule(
        cel="!has(self.queries)"
        " || self.queries.all(a, self.queries.exists_one(b, b.signal == a.signal && b.scope == a.scope))",
        message_cel="'queries: a signal is listed twice for one scope'",
        holds=lambda p: len({(q.signal, q.scope) for q in p.queries}) == len(p.queries),
        message=lambda _: "queries: a signal is listed twice for one scope",
    ),
)

ROUTER: Final = (
    Rule(
        cel="!has(self.replicas) || self.scaling.owner != 'External'",
        message_cel="'replicas: ' + "
        + _decimal("self.replicas")
        + " + ' is for scaling.owner Gearshift; with External, whoever scales the Deployment sets it'",
        holds=lambda r: r.replicas is None or r.scaling.owner is not ScaleOwner.EXTERNAL,
        message=lambda r: (
            f"replicas: {r.replicas} is for scaling.owner Gearshift; with External, whoever scales the Deployment"
            " sets it"
        ),
    ),
)

OVERRIDE: Final = (
    Rule(
        cel="has(self.layout) != has(self.role)",
        message_cel="'override needs exactly one of layout and role'",
        holds=lambda o: (o.layout is None) != (o.role is None),
        message=lambda _: "override needs exactly one of layout and role",
    ),
)


_OURS: Final = "has(self.scaling.owner) && self.scaling.owner == 'Gearshift'"
_NO_ROOM: Final = "scaling.owner: Gearshift needs exactly one role, with a max above 1 and above its floor"

_NO_STANDBY: Final = "scaling.standby needs a service that the policy scales: set scaling.owner to Gearshift"


def _ours(spec: Any) -> bool:
    return spec.scaling.owner is ScaleOwner.GEARSHIFT


def _has_room(spec: Any) -> bool:
    role = spec.roles[0]
    return len(spec.roles) == 1 and role.max is not None and role.max > max(1, role.floor)


def _names(spec: Any) -> list[Role]:
    return [role.name for role in spec.roles]


def _stray(layout: str) -> str:
    """CEL: a role has this layout, and the service does not allow it."""
    asked = f"self.roles.exists(r, has(r.layout) && r.layout == '{layout}')"
    return f"({asked} && !('{layout}' in self.parallelism.layouts))"


# Literals only: a string that comes out of a filter has no bound that CEL's cost estimate would accept.
_STRAY: Final = f"({_stray('TP')} ? 'TP' : {_stray('SP')} ? 'SP' : {_stray('DP')} ? 'DP' : 'Shift')"


def _strays(spec: Any) -> list[Layout]:
    """Layouts of roles that the service does not allow, in the order of `Layout`."""
    asked = {role.layout for role in spec.roles}
    return [layout for layout in Layout if layout in asked and layout not in spec.parallelism.layouts]


def _unread(role: str) -> str:
    """CEL: a query is about this role, and the service has no such role."""
    asked = f"self.policy.queries.exists(q, q.scope == '{role}')"
    return f"({asked} && !self.roles.exists(r, r.name == '{role}'))"


_QUERIES: Final = "has(self.policy) && has(self.policy.queries)"
_UNREAD: Final = f"({_unread('Unified')} ? 'Unified' : {_unread('Prefill')} ? 'Prefill' : 'Decode')"


def _unreads(spec: Any) -> list[Role]:
    """Roles that queries are about and that the service does not have, in the order of `Role`."""
    asked = {query.scope.role for query in spec.policy.queries}
    return [role for role in Role if role in asked and role not in _names(spec)]


def _sp_alone(spec: Any) -> bool:
    layouts = spec.parallelism.layouts
    mixed = Layout.SP in layouts and any(x in (Layout.TP, Layout.SHIFT) for x in layouts)
    return spec.engine.kind is EngineKind.SIMULATED or not mixed


SPEC: Final = (
    Rule(
        cel=f"!({_OURS}) || !has(self.replicas)",
        message_cel="'replicas: ' + "
        + _decimal("self.replicas")
        + " + ' is for scaling.owner External; with Gearshift, min and max of the role bound the number of pods'",
        holds=lambda s: not _ours(s) or s.replicas is None,
        message=lambda s: (
            f"replicas: {s.replicas} is for scaling.owner External; with Gearshift, min and max of the role bound the"
            " number of pods"
        ),
    ),
    Rule(
        cel=f"!({_OURS}) || (self.roles.size() == 1 && has(self.roles[0].max) && self.roles[0].max > 1"
        " && self.roles[0].max > (has(self.roles[0].min) ? self.roles[0].min : (self.roles[0].replicas > 0 ? 1 : 0)))",
        message_cel=f"'{_NO_ROOM}'",
        holds=lambda s: not _ours(s) or _has_room(s),
        message=lambda _: _NO_ROOM,
    ),
    Rule(
        cel=f"!has(self.scaling.standby) || self.scaling.standby == 0 || ({_OURS})",
        message_cel=f"'{_NO_STANDBY}'",
        holds=lambda s: not s.scaling.standby or _ours(s),
        message=lambda _: _NO_STANDBY,
    ),
    Rule(
        cel="self.roles.exists(r, r.name == 'Prefill') == self.roles.exists(r, r.name == 'Decode')",
        message_cel="'roles: Prefill and Decode come together'",
        holds=lambda s: (Role.PREFILL in _names(s)) == (Role.DECODE in _names(s)),
        message=lambda _: "roles: Prefill and Decode come together",
    ),
    Rule(
        cel="self.roles.all(a, self.roles.exists_one(b, b.name == a.name))",
        message_cel="'roles: a role is listed twice'",
        holds=lambda s: len(set(_names(s))) == len(s.roles),
        message=lambda _: "roles: a role is listed twice",
    ),
    Rule(
        cel="self.roles.all(r, !has(r.layout) || r.layout in self.parallelism.layouts)",
        message_cel=f"'roles: layout ' + {_STRAY} + ' of a role is not one of parallelism.layouts'",
        holds=lambda s: not _strays(s),
        message=lambda s: f"roles: layout {_strays(s)[0]} of a role is not one of parallelism.layouts",
    ),
    Rule(
        cel="!has(self.parallelism.sequenceParallelSize)"
        " || self.pod.accelerators % self.parallelism.sequenceParallelSize == 0",
        message_cel="'parallelism.sequenceParallelSize: ' + "
        + _decimal("self.parallelism.sequenceParallelSize")
        + " + ' does not divide pod.accelerators ' + "
        + _decimal("self.pod.accelerators"),
        holds=lambda s: (
            s.parallelism.sequence_parallel_size is None
            or s.pod.accelerators % s.parallelism.sequence_parallel_size == 0
        ),
        message=lambda s: (
            f"parallelism.sequenceParallelSize: {s.parallelism.sequence_parallel_size}"
            f" does not divide pod.accelerators {s.pod.accelerators}"
        ),
    ),
    Rule(
        cel="self.engine.kind == 'Simulated' || !('SP' in self.parallelism.layouts)"
        " || !self.parallelism.layouts.exists(l, l in ['TP', 'Shift'])",
        message_cel=f"'{_SP_ALONE}'",
        holds=_sp_alone,
        message=lambda _: _SP_ALONE,
    ),
    Rule(
        cel="self.pod.accelerators > 1 || !self.parallelism.layouts.exists(l, l != 'TP')",
        message_cel="'parallelism.layouts: a pod with pod.accelerators 1 has only layout TP'",
        holds=lambda s: s.pod.accelerators > 1 or list(s.parallelism.layouts) == [Layout.TP],
        message=lambda _: "parallelism.layouts: a pod with pod.accelerators 1 has only layout TP",
    ),
    Rule(
        cel="!has(self.override) || !has(self.override.layout) || self.override.layout in self.parallelism.layouts",
        message_cel="'override.layout: ' + self.override.layout + ' is not one of parallelism.layouts'",
        holds=lambda s: s.override is None or s.override.layout is None or s.override.layout in s.parallelism.layouts,
        message=lambda s: f"override.layout: {s.override.layout} is not one of parallelism.layouts",
    ),
    Rule(
        cel="!has(self.override) || !has(self.override.role) || self.roles.exists(r, r.name == self.override.role)",
        message_cel="'override.role: ' + self.override.role + ' is not one of roles'",
        holds=lambda s: s.override is None or s.override.role is None or s.override.role in _names(s),
        message=lambda s: f"override.role: {s.override.role} is not one of roles",
    ),
    Rule(
        cel=f"!({_QUERIES}) || self.policy.queries.all(q, q.scope == 'Service'"
        " || self.roles.exists(r, r.name == q.scope))",
        message_cel=f"'policy.queries: scope ' + {_UNREAD} + ' is not one of roles'",
        holds=lambda s: not _unreads(s),
        message=lambda s: f"policy.queries: scope {_unreads(s)[0]} is not one of roles",
    ),
    Rule(
        cel="!has(self.replicas) || self.replicas == 0"
        " || self.replicas >= self.roles.map(r, has(r.min) ? r.min : (r.replicas > 0 ? 1 : 0)).sum()",
        message_cel="'replicas: ' + " + _decimal("self.replicas") + " + ' is below the sum of the roles\\' floors'",
        holds=lambda s: not s.replicas or s.replicas >= sum(role.floor for role in s.roles),
        message=lambda s: f"replicas: {s.replicas} is below the sum of the roles' floors",
    ),
)
