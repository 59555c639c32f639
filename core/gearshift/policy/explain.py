# SPDX-License-Identifier: Apache-2.0
"""A plan in words, the same for status, events, logs and the command line."""

from gearshift.policy.plan import Action, CreatePod, DeletePod, Plan, Transit

SHOWN_ACTIONS = 2


def action_line(action: Action) -> str:
    """One action, as an order: ``Layout of chat-1 to DP``."""
    match action:
        case CreatePod():
            return f"Create pod {action.ordinal} as {action.role} with layout {action.layout}"
        case DeletePod():
            return f"Delete {action.name}{' by force' if action.force else ''}"
        case Transit():
            if action.threshold_tokens is not None:
                return f"Threshold of {action.pod} to {action.threshold_tokens} tokens"
            return f"{action.kind} of {action.pod} to {action.to}"


def summary(plan: Plan) -> str:
    """What the plan does, at most 253 characters: its actions, ``Propose: ...`` or ``Hold``."""
    if plan.actions:
        return _listed(plan.actions)[:253]
    return f"Propose: {_listed(plan.proposal)}"[:253] if plan.proposal else "Hold"


def explain(plan: Plan) -> str:
    """One line: what, why, and the words behind it."""
    return f"{summary(plan)} ({plan.reason}){': ' + plan.message if plan.message else ''}"


def _listed(actions: tuple[Action, ...]) -> str:
    lines = [action_line(action) for action in actions[:SHOWN_ACTIONS]]
    more = len(actions) - len(lines)
    return ", ".join(lines) + (f" and {more} more" if more else "")
