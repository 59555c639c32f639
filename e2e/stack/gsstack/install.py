# SPDX-License-Identifier: Apache-2.0
"""Install Gearshift in a cluster the way a user does: apply crds/ and config/, wait for the operator."""

import shutil
import tempfile
from pathlib import Path

from gscluster.kubectl import Kubectl

ROOT = Path(__file__).parents[3]
OPERATOR_NAMESPACE = "gearshift-system"
IMAGE = "gearshift.local/gearshift:dev"
SETTINGS = {"GEARSHIFT_OPERATOR_IMAGE": IMAGE, "GEARSHIFT_OPERATOR_ENGINE_IMAGE_CPU": IMAGE}


def install(kubectl: Kubectl, settings: dict[str, str] | None = None, *, timeout_seconds: int = 120) -> None:
    """Apply CRD, RBAC and operator; return when the operator is available.

    Args:
        settings: more environment variables of the operator, by name.
    """
    kubectl.apply_crds(ROOT / "crds")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config")
        shutil.copytree(ROOT / "config", config)
        lines = [f"{name}={value}" for name, value in (SETTINGS | (settings or {})).items()]
        (config / "operator/settings.env").write_text("\n".join(lines) + "\n")
        kubectl("apply", "-k", str(config))
    kubectl("apply", "-f", str(ROOT / "config/prometheus/rbac.yaml"))
    wait_for_operator(kubectl, timeout_seconds)


def wait_for_operator(kubectl: Kubectl, timeout_seconds: int = 120) -> None:
    """Return when the operator's Deployment has rolled out."""
    words = ["rollout", "status", "deployment/gearshift-operator", "--namespace", OPERATOR_NAMESPACE]
    kubectl(*words, f"--timeout={timeout_seconds}s", timeout_seconds=timeout_seconds + 10)


def uninstall(kubectl: Kubectl) -> None:
    """Delete the operator and what it needs; the services must be gone before."""
    kubectl("delete", "-k", str(ROOT / "config"), "--ignore-not-found", "--wait=true", timeout_seconds=120)
