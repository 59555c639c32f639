# SPDX-License-Identifier: Apache-2.0
"""Numbers of the policy that no user sets, each with its reason, in one place."""

from typing import Final

EVIDENCE_WINDOWS: Final = 0.5
"""Share of ``policy.window`` for which a decision must have been wanted; readings are means over a window already."""

QUEUE_HIGH: Final = 4.0
"""Waiting requests per pod that are a queue, not a ripple of arrivals: pressure 1."""

QUEUE_SOME: Final = 1.0
"""Waiting requests per pod that count as a queue once TTFT misses its objective."""

QUEUE_LOW: Final = 0.5
"""Waiting requests per pod below which nothing queues. Far under `QUEUE_HIGH`, so that one load is never both."""

KV_FULL: Final = 0.9
"""Used share of the KV cache from which requests wait for blocks."""

KV_LOW: Final = 0.5
"""Used share of the KV cache below which load may be light."""

RUNNING_LOW: Final = 16.0
"""Running requests per pod below which load may be light: small batches gain nothing from throughput layouts."""

LIGHT_SHARE: Final = 0.6
"""Share of a layout's known capacity below which the service may go back to that layout."""

HOT: Final = 0.9
"""Pressure from which a role asks for another pod (1: objective just missed)."""

BAND: Final = 0.85
"""After a flip the donor's pressure must stay below this share of the receiver's, so that none asks for its reverse."""

BRIDGE_SLACK: Final = 0.75
"""Pressure that the pods left behind by a bridge may be under: less than `HOT`, so that they do not ask for it back."""

BRIDGE_LEAST_SECONDS: Final = 15.0
"""Time left of a start-up from which a bridge pays: with less, it stands hardly before it goes back."""

BRIDGE_COSTS: Final = 4.0
"""Times as long as a change of role takes, that must be left of a start-up: a bridge changes twice."""

BRIDGE_WINDOWS: Final = 10.0
"""Windows after which a bridge whose role needs it on, beside the pod that it awaited, is one no more."""

ROLE_GAIN: Final = 1.15
"""Times as much that Unified pods must carry as split ones, or the reverse, to change pods to them."""

UNIFIED_EASY: Final = 3.0
"""Times the load that Unified pods must carry to be taken for ease, whatever split ones carry: nothing disturbs."""

UNIFIED_SCARCE: Final = 1.5
"""Times the load below which Unified pods make room for split ones that carry more. Far under `UNIFIED_EASY`."""

REVERSIBLE_PODS: Final = 4
"""Fewest pods of a service that becomes Unified for ease: the way back, under load, would cost a smaller one too many
of its pods meanwhile."""

CARRY_KEPT: Final = 0.5
"""Share of what is carried that must go on being carried while pods change between Unified and split."""

DECODE_SHARE: Final = 0.9
"""Share of a Decode pod's time that its sequences may take where ITL allows it: no prompt comes between."""

PROMPTS_DISTURB: Final = 0.2
"""Share of the work from which prompts may be what delays tokens; with less, decoding itself is too much."""

TRANSFER_SHARE: Final = 0.5
"""Share of the TTFT objective from which the arrival of a KV cache takes too long."""

MEASURED_WINDOWS: Final = 2.0
"""Windows for which latencies and transfers must have spoken for, or against, Unified pods."""

MODEL_WINDOWS: Final = 4.0
"""Windows for which the performance model must have: it judges by the mix of a window, which differs by chance."""

DONOR_SHARE: Final = 0.85
"""Share of their known capacity at which the pods left behind by a flip may run."""

PRESSURE_CAP: Final = 10.0
"""Pressures above it are equal: a queue grows without bound, its length says nothing more."""

CAPACITY_WINDOWS: Final = 60.0
"""Windows after which a measured capacity is forgotten: models and request mixes change."""

REPLACE_AFTER_SECONDS: Final = 10.0
"""Least age of a failed pod before it is replaced, so that a pod that fails at once is not remade in a tight loop."""

BUSY_SHARE: Final = 0.7
"""Share of a pod's time that demand may take, however many pods share it."""

BURSTS: Final = 5.0
"""Standard deviations of the work that arrives within the TTFT objective, added to its mean: the rule of square-root
staffing. More than evenly sized requests would need, since lengths differ widely."""

SPARE_BURSTS: Final = 5.5
"""As `BURSTS`, for the pods that must stay; more than it, so that no load is both too much and too little."""

ITL_SHARE: Final = 0.8
"""Share of the ITL objective that the mean step may take, so that the 90th percentile keeps it."""

QUEUE_SHARE: Final = 0.15
"""Mean time in the queue, as a share of the TTFT objective, from which requests queue: some wait many times as long."""

BURIED_SHARE: Final = 0.5
"""Mean time in the queue, as a share of the TTFT objective, from which the load is more than the pods carry."""

MISSED_SHARE: Final = 0.25
"""Share of the pods' time that must be used for missed objectives to be the load's doing."""

USUAL_REQUESTS: Final = 10.0
"""Requests of usual lengths that are added to those seen, so that a single long one is not taken for the mean."""

RISE_SECONDS: Final = 10.0
"""Least span over which a queue is said to grow: batches of arrivals come and go within less."""

CHANCE_DEVIATIONS: Final = 3.0
"""Standard deviations by which the work of a window must differ from its mean to be a change, not chance."""

TREND_SPANS: Final = 3
"""Start-up times in a row in which work must have grown to be said to grow on."""

STARTUP_SECONDS: Final = 60.0
"""Seconds from the creation of a pod to serving, where none was seen to start."""

LONGEST_LEAD_SECONDS: Final = 300.0
"""Farthest that a trend leads: where pods take longer to start, what load does until then is not known."""

SAMPLE_SECONDS: Final = 5.0
"""Least time between two samples of demand that are remembered."""

WATCH_SECONDS: Final = 300.0
"""Least time that a service has been watched before its first pod goes: what its load does is not known before."""

STABLE_SECONDS: Final = 300.0
"""Span over which the room for chance stays, as long as an HPA's: load rarely falls for long at once."""

BURST_SECONDS: Final = 900.0
"""Span over which as many pods stay as the highest load kept busy: bursts come again, and new pods come too late."""

SURGE_SECONDS: Final = 3600.0
"""Span over which room stays for the steepest rise of load: what users and jobs do, they do again within the hour."""

SHRINK_SECONDS: Final = 30.0
"""Least time between two pods that go: the window in which the loss of the first one shows."""

REVERSAL_SECONDS: Final = 120.0
"""Span within which two opposite changes of the number of pods are a reversal: no pod goes that soon after a growth."""

SOON_SECONDS: Final = 600.0
"""Span within which growth after a loss is a regret: a start-up and a drain were paid for little."""

REGRET_SECONDS: Final = 600.0
"""Time in which no pod goes after a regret, doubled by each further one: load that has come back comes back again."""

LONGEST_REST_SECONDS: Final = 86_400.0
"""Longest time in which regrets keep pods: a day, after which load may be another one."""

COST_SPANS: Final = 5.0
"""Times as long as a transition takes, that a pod keeps what it has: at most a sixth of its time goes into changing."""

HOUR_SECONDS: Final = 3600.0
"""Span over which transitions are counted and moves are remembered."""

TRANSITIONS_PER_HOUR: Final = 12
"""Most transitions of a small service in an hour."""

TRANSITIONS_PER_POD_AND_HOUR: Final = 6
"""Most transitions in an hour by pods of the service, where that is more."""

BACKOFF_MOST_SECONDS: Final = 600.0
"""Longest wait after transitions that failed one after the other."""
