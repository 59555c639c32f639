# SPDX-License-Identifier: Apache-2.0
"""Every example is a spec that the operator takes, and makes pods from."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gearshift.api.v1alpha1 import InferenceService, InferenceServiceSpec
from gearshift.api.vocabulary import MetricSignal
from gearshift.operator.manifests.children import build_children
from gearshift.operator.manifests.meta import Owner
from gearshift.operator.manifests.pod import build_pod
from gearshift.operator.validity import service_problem
from tests.unit.operator.builders import INSTALLATION

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    body = yaml.safe_load(path.read_text())
    spec = InferenceServiceSpec.model_validate(body["spec"])
    owner = Owner("default", body["metadata"]["name"], "uid-1", spec)
    installation = replace(INSTALLATION, engine_image_cpu="example/vllm:cpu")
    pods = [build_pod(owner, installation, 0, role.name, spec.parallelism.start) for role in spec.roles]
    assert len({pod["metadata"]["labels"]["gearshift.dev/revision"] for pod in pods}) == 1
    assert len(build_children(owner, installation)) == 9


def test_the_documented_queries_are_asked_and_the_documented_refusal_is_given() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (refusal,) = re.findall(r"^spec\.policy\.queries.*$", page, re.MULTILINE)
    body = yaml.safe_load(text)
    body["metadata"]["uid"] = "uid-1"
    assert service_problem(InferenceService.model_validate(body)) is None
    body["spec"]["policy"]["queries"][0]["query"] = 'sum(x{namespace="team-b"})'
    assert service_problem(InferenceService.model_validate(body)) == refusal
    assert all(f"| `{signal}` |" in page for signal in MetricSignal)
