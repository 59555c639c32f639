# SPDX-License-Identifier: Apache-2.0
"""A pod dies under load: a warm one of the other role stands in for it while its successor starts."""

from dataclasses import dataclass, replace

from gearshift.api import reasons
from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.api.vocabulary import Role
from gearshift.perf.profiles import LLAMA_3_70B_FP8_H200
from gearshift.policy.plan import DeletePod, Plan, Transit
from gearshift.policy.snapshot import Snapshot
from gearshift.sim.fleet.controllers import Ours
from gearshift.sim.fleet.settings import FleetSettings
from gearshift.sim.fleet.world import World
from gearshift.sim.load.arrivals import Phase, draw_arrivals

DIES_AT = 300.0


@dataclass
class Killing(Ours):
    """The policy, and a prefill pod that dies once."""

    killed: bool = False

    def tick(self, snapshot: Snapshot) -> Plan:
        """One tick of the operator."""
        plan = super().tick(snapshot)
        if self.killed or snapshot.at < DIES_AT:
            return plan
        self.killed = True
        victim = next(pod for pod in snapshot.pods if pod.role is Role.PREFILL)
        return replace(plan, actions=(DeletePod(victim.name, victim.uid, "Killed"),))


def test_a_bridge_stands_until_the_successor_serves() -> None:
    """The only prefill pod dies; its bridge comes within seconds, and goes back after the start-up."""
    spec = InferenceServiceSpec.model_validate(
        {
            "model": {"uri": "hf://org/model"},
            "engine": {"kind": "Simulated"},
            "pod": {"accelerators": 2},
            "roles": [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 3}],
        }
    )
    settings = FleetSettings(profile=LLAMA_3_70B_FP8_H200)
    load = Phase(seconds=600.0, requests_per_second=2.0, prompt_tokens=3000, output_tokens=100, spread=0.5)
    outcome = World(spec, settings, Killing(), draw_arrivals([load], seed=3, max_requests=10_000)).run()
    flips = [(acted.at, acted.action) for acted in outcome.acted if isinstance(acted.action, Transit)]
    (there, bridge), (back, over) = flips
    assert (bridge.to, bridge.reason) == ("Prefill", reasons.BRIDGE)
    assert (over.to, over.reason, over.pod) == ("Decode", reasons.BRIDGE_OVER, bridge.pod)
    assert there - DIES_AT < 10
    assert settings.startup_seconds <= back - DIES_AT < settings.startup_seconds + 30
    assert outcome.goodput > 0.98
