# SPDX-License-Identifier: Apache-2.0
"""The CRD on a real API server: what it lets in, what it refuses and how it says so; the same verdicts as in Python."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gearshift.api import names
from gscluster.errors import ClusterError
from gscluster.fast import FastCluster
from gscluster.kubectl import Kubectl

ROOT = Path(__file__).parents[3]
_loaded = importlib.util.spec_from_file_location("api_cases", ROOT / "tests/unit/api/cases.py")
assert _loaded is not None
assert _loaded.loader is not None
cases = importlib.util.module_from_spec(_loaded)
_loaded.loader.exec_module(cases)

pytestmark = pytest.mark.functional


@pytest.fixture(scope="module")
def kubectl(fast_api_server: FastCluster) -> Iterator[Kubectl]:
    """kubectl on an API server that has the CRD."""
    found = fast_api_server.kubectl
    found.apply_crds(ROOT / "crds")
    yield found
    found("delete", names.PLURAL, "--all", "--all-namespaces", "--ignore-not-found")


def manifest(spec: dict[str, Any], name: str = "case") -> str:
    metadata = {"name": name, "namespace": "default"}
    return json.dumps({"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": spec})


def dry_run(kubectl: Kubectl, spec: dict[str, Any], name: str = "case") -> str:
    """Create on the server's side without storing; returns what kubectl printed."""
    return kubectl("create", "--dry-run=server", "-f", "-", stdin=manifest(spec, name))


def refusal(kubectl: Kubectl, spec: dict[str, Any], name: str = "case") -> str:
    with pytest.raises(ClusterError) as caught:
        dry_run(kubectl, spec, name)
    return str(caught.value)


@pytest.mark.parametrize("name", cases.GOOD)
def test_servable_spec_is_let_in(kubectl: Kubectl, name: str) -> None:
    assert "created (server dry run)" in dry_run(kubectl, cases.GOOD[name])


@pytest.mark.parametrize("name", cases.BAD)
def test_unservable_spec_is_refused_with_the_reason_that_python_gives(kubectl: Kubectl, name: str) -> None:
    body, message = cases.BAD[name]
    said = refusal(kubectl, body)
    assert message in said
    assert '"case" is invalid' in said


@pytest.mark.parametrize("name", cases.BAD_BY_SCHEMA)
def test_malformed_spec_is_refused_by_its_field(kubectl: Kubectl, name: str) -> None:
    body, field = cases.BAD_BY_SCHEMA[name]
    assert field in refusal(kubectl, body)


@pytest.mark.parametrize("name", ["a" * 51, "9lives", "dots.are.not"])
def test_name_that_makes_no_service_is_refused(kubectl: Kubectl, name: str) -> None:
    assert f"metadata.name: {name} is not a DNS label" in refusal(kubectl, cases.GOOD["least"], name)


def test_unknown_field_is_named(kubectl: Kubectl) -> None:
    assert 'unknown field "spec.replica"' in refusal(kubectl, cases.spec(replica=3))


def test_second_apply_changes_nothing_and_scale_explain_and_columns_work(kubectl: Kubectl) -> None:
    for _ in range(2):
        kubectl("apply", "--server-side", "-f", "-", stdin=manifest(cases.GOOD["split roles"], "whole"))
    first = kubectl.json("get", "gsvc", "whole")["metadata"]
    kubectl("apply", "--server-side", "-f", "-", stdin=manifest(cases.GOOD["split roles"], "whole"))
    second = kubectl.json("get", "gsvc", "whole")["metadata"]
    assert (first["generation"], first["resourceVersion"]) == (second["generation"], second["resourceVersion"])
    kubectl("scale", "gsvc", "whole", "--replicas=5")
    assert kubectl.json("get", "gsvc", "whole")["spec"]["replicas"] == 5
    assert "Layouts that the policy may choose from" in kubectl("explain", "gsvc.spec.parallelism.layouts")
    header = kubectl("get", "gearshift").splitlines()[0].split()
    assert header == ["NAME", "READY", "LAYOUT", "P/D", "REPLICAS", "MODEL", "AGE"]


def test_two_owners_share_the_list_of_queries(kubectl: Kubectl) -> None:
    """Each keeps its entries, which are told apart by signal and scope, the default one included."""
    mine = {"signal": "Waiting", "query": "sum(a)"}
    theirs = {"signal": "Running", "query": "sum(b)"}

    def apply(owner: str, spec: dict[str, Any]) -> list[dict[str, str]]:
        stdin = manifest(spec, "shared")
        kubectl("apply", "--server-side", "--force-conflicts", f"--field-manager={owner}", "-f", "-", stdin=stdin)
        found: list[dict[str, str]] = kubectl.json("get", "gsvc", "shared")["spec"]["policy"]["queries"]
        return sorted(found, key=lambda entry: entry["signal"])

    apply("me", cases.spec(policy={"queries": [mine]}))
    both = apply("they", cases.spec(policy={"queries": [theirs]}))
    assert both == [{**theirs, "scope": "Service"}, {**mine, "scope": "Service"}]
    changed = apply("me", cases.spec(policy={"queries": [{**mine, "query": "sum(c)", "scope": "Service"}]}))
    assert [entry["query"] for entry in changed] == ["sum(b)", "sum(c)"]
    assert [entry["query"] for entry in apply("me", cases.spec())] == ["sum(b)"]
