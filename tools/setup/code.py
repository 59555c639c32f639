# SPDX-License-Identifier: Apache-2.0
"""Gearshift's code as an installed distribution: one folder with all portions of the namespace and the metadata.

vLLM finds its plugins by the entry points in the metadata, so the image needs them although nothing was installed.
"""

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tools.setup.paths import SOURCE_ROOTS


def stage_code(folder: Path, checkout: Path) -> None:
    """Fills `folder` with the `gearshift` packages of all source roots and a dist-info folder."""
    for root in SOURCE_ROOTS:
        source = checkout / root / "gearshift"
        shutil.copytree(
            source, folder / "gearshift", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    dist_info = folder / f"{project['name']}-{project['version']}.dist-info"
    dist_info.mkdir()
    metadata = f"Metadata-Version: 2.3\nName: {project['name']}\nVersion: {project['version']}\n"
    (dist_info / "METADATA").write_text(metadata)
    (dist_info / "INSTALLER").write_text("gearshift-setup\n")
    (dist_info / "entry_points.txt").write_text(entry_points_text(project))


def entry_points_text(project: Mapping[str, object]) -> str:
    """The `entry_points.txt` of a `[project]` table: its scripts and its entry points."""
    groups: dict[str, Mapping[str, str]] = {}
    scripts, entry_points = project.get("scripts"), project.get("entry-points")
    if isinstance(scripts, Mapping):
        groups["console_scripts"] = scripts
    if isinstance(entry_points, Mapping):
        groups.update(entry_points)
    blocks = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in sorted(members.items()))])
        for group, members in sorted(groups.items())
    )
    return "\n\n".join(blocks) + "\n"
