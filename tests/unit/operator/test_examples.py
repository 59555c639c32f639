# SPDX-License-Identifier: Apache-2.0
"""Every example is a spec that the operator takes, and makes pods from."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from gearshift.api.v1alpha1 import InferenceServiceSpec
from gearshift.operator.manifests.children import build_children
from gearshift.operator.manifests.meta import Owner
from gearshift.operator.manifests.pod import build_pod
from tests.unit.operator.builders import INSTALLATION

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    body = yaml.safe_load(path.read_text())
    spec = InferenceServiceSpec.model_validate(body["spec"])
    owner = Owner("default", body["metadata"]["name"], "uid-1", spec)
    installation = replace(INSTALLATION, engine_image_cpu="example/vllm:cpu")
    pods = [build_pod(owner, installation, 0, role.name, spec.parallelism.start) for role in spec.roles]
    assert len({pod["metadata"]["labels"]["gearshift.dev/revision"] for pod in pods}) == 1
    assert len(build_children(owner, installation)) == 9
