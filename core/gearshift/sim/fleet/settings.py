# SPDX-License-Identifier: Apache-2.0
"""What a simulated fleet is made of beside its spec: engine model, times of the cluster, intervals of the loop."""

from dataclasses import dataclass

from gearshift.perf.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """Seconds unless the name says otherwise."""

    profile: Profile
    startup_seconds: float = 60.0  # creation of a pod to serving
    scrape_seconds: float = 5.0
    tick_seconds: float = 5.0  # of the operator
    busy_tick_seconds: float = 1.0  # of the operator, while a transition runs
    verify_seconds: float = 0.5  # probe of a transition
    publish_seconds: float = 0.2  # routers hear of a change
    queue_timeout_seconds: float = 30.0  # longest wait at the router for a pod that admits
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    seed: int = 1
