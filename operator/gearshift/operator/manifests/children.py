# SPDX-License-Identifier: Apache-2.0
"""All children of a service but its pods, and how to see whether a live one is as it should be."""

import hashlib
import json
from typing import Any, Final

from gearshift.api import names
from gearshift.operator.manifests import access, disruption, network, router, services
from gearshift.operator.manifests.meta import Installation, Manifest, Owner

APPLIED: Final = f"{names.GROUP}/applied"  # annotation: digest of the manifest that was applied last


def build_children(owner: Owner, installation: Installation, pods: int | None = None) -> list[Manifest]:
    """Manifests in the order in which they are applied: what pods need comes first.

    ``pods`` is the number that scaling wants, None where the spec says it.
    """
    manifests = [
        access.build_engine_account(owner),
        access.build_router_account(owner),
        access.build_router_role(owner),
        access.build_router_binding(owner),
        network.build_network_policy(owner, installation),
        services.build_pods_service(owner),
        services.build_router_service(owner),
        disruption.build_budget(owner, pods),
        router.build_router(owner, installation),
    ]
    for manifest in manifests:
        manifest["metadata"]["annotations"] = {APPLIED: digest(manifest)}
    return manifests


def applied_digest(manifest: Manifest) -> str:
    """The digest that a manifest of `build_children` carries."""
    return str(manifest["metadata"]["annotations"][APPLIED])


def digest(manifest: Manifest) -> str:
    """Short hash of a manifest."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def as_applied(live: Manifest | None, wanted: Manifest) -> bool:
    """The live object was last applied from this very manifest, and nobody has changed a field of it since."""
    return live is not None and _covers(live, wanted)


def _covers(live: Any, wanted: Any) -> bool:
    """``live`` has every field of ``wanted`` with its value, and perhaps more. Lists have equal length.

    The API server leaves out many fields that are false, so an absent field counts as false.
    """
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_covers(live.get(key, False), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(live, list) and len(live) == len(wanted)
        return same and all(_covers(present, value) for present, value in zip(live, wanted, strict=True))
    return bool(live == wanted)
