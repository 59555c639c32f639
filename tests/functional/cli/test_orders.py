# SPDX-License-Identifier: Apache-2.0
"""Orders, holds and approvals on a real API server: what the object is afterwards, and whose field it is."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from gearshift.api import names
from gearshift.api.approval import Approval
from tests.functional.cli.conftest import Run, annotation, apply_as, override, write_status
from tests.functional.operator.world import Space

pytestmark = pytest.mark.functional

LAYOUTS = {"parallelism": {"layouts": ["TP", "DP"]}}
SPLIT = {"roles": [{"name": "Prefill", "replicas": 2, "min": 1}, {"name": "Decode", "replicas": 2, "min": 1}]}
MODEL = {"model": {"uri": "hf://org/llama"}, "engine": {"kind": "Simulated"}}
UNTIL = "2036-12-01T18:00:00Z"
PLAN = "0123456789ab"


@pytest.fixture(autouse=True)
def _service(space: Space) -> None:
    space.apply(**LAYOUTS, **SPLIT)


def waits(plan: str = PLAN) -> dict[str, Any]:
    """A decision that waits for approval."""
    message = f"Queueing: 9 requests wait per pod; approve plan {plan}"
    return {"plan": plan, "action": "Hold", "reason": "AwaitingApproval", "message": message, "at": now()}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def owner_of_override(space: Space) -> list[tuple[str, str]]:
    """Who holds ``spec.override``: managers and their operations."""
    entries = space.cluster.kubectl.json("get", "gsvc", "chat", "-n", space.name, "--show-managed-fields")
    return [
        (entry["manager"], entry["operation"])
        for entry in entries["metadata"]["managedFields"]
        if "f:override" in entry["fieldsV1"].get("f:spec", {})
    ]


def test_an_order_is_written_under_the_command_lines_own_name(space: Space, run: Run) -> None:
    said = run("shift", "chat", "dp", "--until", "2036-12-01T20:00:00+02:00")
    assert (said.code, said.err) == (0, "")
    assert said.out == f"inferenceservice.gearshift.dev/chat ordered: layout DP until {UNTIL}\n"
    assert override(space) == {"layout": "DP", "until": UNTIL}
    assert owner_of_override(space) == [("kubectl-gearshift", "Apply")]


def test_an_order_lasts_half_an_hour_unless_told_otherwise(space: Space, run: Run) -> None:
    for words, minutes in (((), 30), (("--for", "2h"), 120)):
        assert run("flip", "chat", "Decode", *words).code == 0
        found = override(space)
        assert found is not None
        left = datetime.fromisoformat(found["until"]) - datetime.now(UTC)
        assert timedelta(minutes=minutes - 1) < left <= timedelta(minutes=minutes)


def test_a_new_order_takes_the_place_of_the_old_one(space: Space, run: Run) -> None:
    assert run("shift", "chat", "DP", "--until", UNTIL).code == 0
    assert run("flip", "chat", "prefill", "--until", UNTIL).code == 0
    assert override(space) == {"role": "Prefill", "until": UNTIL}


def test_an_order_survives_the_sync_of_a_gitops_tool_that_does_not_state_it(space: Space, run: Run) -> None:
    apply_as(space, "flux", **MODEL, **LAYOUTS)
    assert run("shift", "chat", "DP", "--until", UNTIL).code == 0
    apply_as(space, "flux", **MODEL, **LAYOUTS)
    assert override(space) == {"layout": "DP", "until": UNTIL}


def test_an_order_of_somebody_else_is_replaced_only_by_force(space: Space, run: Run) -> None:
    apply_as(space, "flux", **MODEL, **LAYOUTS, override={"role": "Decode", "until": UNTIL})
    said = run("shift", "chat", "DP")
    assert said.code == 1
    assert "spec.override is set by flux; change it there, or replace it with --force-conflicts" in said.err
    assert override(space) == {"role": "Decode", "until": UNTIL}
    assert run("shift", "chat", "DP", "--until", UNTIL, "--force-conflicts").code == 0
    assert override(space) == {"layout": "DP", "until": UNTIL}
    assert owner_of_override(space) == [("kubectl-gearshift", "Apply")]


def test_release_ends_hold_and_order_in_one_write(space: Space, run: Run) -> None:
    assert run("shift", "chat", "DP").code == 0
    assert run("hold", "chat", "--reason", "kernel  upgrade").out.endswith("chat held: kernel upgrade\n")
    assert annotation(space, names.ANNOTATION_HOLD) == "kernel upgrade"
    generation = space.get("gsvc", "chat")["metadata"]["generation"]
    assert run("release", "chat").out.endswith("chat released: hold and order layout DP\n")
    assert (annotation(space, names.ANNOTATION_HOLD), override(space)) == (None, None)
    assert owner_of_override(space) == []
    assert space.get("gsvc", "chat")["metadata"]["generation"] == generation + 1
    assert run("release", "chat").out.endswith("chat was not held and had no order\n")


def test_release_of_somebody_elses_order_needs_force_and_is_all_or_nothing(space: Space, run: Run) -> None:
    apply_as(space, "flux", **MODEL, **LAYOUTS, override={"role": "Decode", "until": UNTIL})
    assert run("hold", "chat").code == 0
    said = run("release", "chat")
    assert said.code == 1
    assert "spec.override is set by flux" in said.err
    assert annotation(space, names.ANNOTATION_HOLD) == "true"
    assert run("release", "chat", "--force-conflicts").code == 0
    assert (annotation(space, names.ANNOTATION_HOLD), override(space)) == (None, None)


def test_a_held_service_takes_no_order(space: Space, run: Run) -> None:
    assert run("hold", "chat", "--reason", "kernel upgrade").code == 0
    said = run("shift", "chat", "DP")
    assert said.code == 1
    assert (
        "is held (kernel upgrade), so that no order acts; release it first: kubectl gearshift release chat" in said.err
    )
    assert override(space) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("shift", "chat", "SP"), "chat: 'SP' is not in spec.parallelism.layouts: TP, DP"),
        (("flip", "chat", "Unified"), "chat: 'Unified' is not in spec.roles: Prefill, Decode"),
        (("shift", "none", "DP"), "none not found"),
        (("hold", "none"), "none not found"),
        (("release", "none"), "none not found"),
        (("approve", "none"), "none not found"),
    ],
)
def test_what_can_not_be_ordered_is_refused_by_name(
    space: Space, run: Run, words: tuple[str, ...], message: str
) -> None:
    said = run(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"kubectl gearshift: inferenceservice {space.name}/{message}\n"
    assert override(space) is None


def test_a_dry_run_is_checked_by_the_api_server_and_changes_nothing(space: Space, run: Run) -> None:
    space.cluster.kubectl("annotate", "gsvc", "chat", "-n", space.name, f"{names.ANNOTATION_HOLD}=mine")
    write_status(space, lastDecision=waits())
    before = space.get("gsvc", "chat")["metadata"]["resourceVersion"]
    for words in (("hold", "chat"), ("release", "chat"), ("approve", "chat")):
        said = run(*words, "--dry-run=server")
        assert said.code == 0
        assert said.out.splitlines()[-1].endswith("(server dry run)")
    assert space.get("gsvc", "chat")["metadata"]["resourceVersion"] == before
    said = run("release", "chat", "--dry-run=server", "-o", "json")
    assert names.ANNOTATION_HOLD not in said.json["metadata"].get("annotations", {})
    space.cluster.kubectl("annotate", "gsvc", "chat", "-n", space.name, f"{names.ANNOTATION_HOLD}-")
    assert run("shift", "chat", "DP", "--dry-run=server", "--wait").code == 0
    assert override(space) is None


def test_the_object_that_was_written_is_printed_for_machines(space: Space, run: Run) -> None:
    said = run("shift", "chat", "DP", "--until", UNTIL, "-o", "yaml")
    assert yaml.safe_load(said.out)["spec"]["override"] == {"layout": "DP", "until": UNTIL}
    assert "ordered: layout DP" in said.err
    assert "managedFields" not in said.out


def test_the_plan_that_waits_is_approved_for_a_while(space: Space, run: Run) -> None:
    write_status(space, lastDecision=waits())
    begun = time.time()
    for words in ((), (PLAN,)):
        said = run("approve", "chat", *words)
        assert said.code == 0
        assert said.out.splitlines()[0] == f"plan {PLAN}: Queueing: 9 requests wait per pod"
        approval = Approval.parse(annotation(space, names.ANNOTATION_APPROVE) or "")
        assert approval.plan == PLAN
        assert approval.until is not None
        assert begun + 898 < approval.until <= time.time() + 900


def test_a_plan_whose_approval_has_expired_waits_again(space: Space, run: Run) -> None:
    write_status(space, lastDecision={**waits(), "reason": "ApprovalExpired"})
    assert run("approve", "chat", "--until", UNTIL).code == 0
    assert annotation(space, names.ANNOTATION_APPROVE) == f"{PLAN}@{UNTIL}"


def test_a_plan_that_does_not_wait_is_not_approved(space: Space, run: Run) -> None:
    said = run("approve", "chat", PLAN)
    assert said.code == 1
    assert "no plan waits for approval; policy.actuation is Auto; nothing has been decided yet" in said.err
    write_status(space, lastDecision={**waits(), "reason": "Steady", "message": "nothing is to be done"})
    assert "the last decision is Hold, Steady: nothing is to be done" in run("approve", "chat").err
    write_status(space, lastDecision=waits("fedcba987654"))
    said = run("approve", "chat", PLAN)
    assert said.code == 1
    assert f"plan '{PLAN}' is not the one that waits; that is fedcba987654: AwaitingApproval: Queueing" in said.err
    assert annotation(space, names.ANNOTATION_APPROVE) is None


def test_a_wait_without_an_operator_says_so_when_its_time_is_up(space: Space, run: Run) -> None:
    said = run("shift", "chat", "DP", "--wait", "--timeout", "1s")
    assert said.code == 1
    assert "not done after 1s" in said.err
    assert "no operator has seen generation 2 of the spec" in said.err
