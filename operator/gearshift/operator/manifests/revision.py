# SPDX-License-Identifier: Apache-2.0
"""Revision of the pods that a spec asks for.

It covers what a user wrote, not what the operator makes of it: a new operator version, or another default image, does
not roll pods that nobody asked to change. Roles, counts, start layout and policy are left out, because they change
while a pod lives. So does the threshold of layout Shift, but whether there is one: without, an engine measures its own
when it starts.
"""

import hashlib
import json
from typing import Final

from gearshift.api.v1alpha1 import InferenceServiceSpec

_LIVE: Final = ("initial", "shiftThresholdTokens")


def revision(spec: InferenceServiceSpec) -> str:
    """Ten hex digits; equal for specs that ask for equal pods. Fields at their default do not count."""
    asked = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    parallelism = {key: value for key, value in asked.get("parallelism", {}).items() if key not in _LIVE}
    if spec.parallelism.shift_threshold_tokens is not None:
        parallelism["shiftThreshold"] = "fixed"
    parts = {
        "model": asked["model"],
        "engine": asked.get("engine", {}),
        "pod": asked.get("pod", {}),
        "parallelism": parallelism,
        "disaggregated": spec.disaggregated,
    }
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
