# SPDX-License-Identifier: Apache-2.0
"""Image archives in the `docker save` form, which `ctr images import`, `docker load` and `podman load` read."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ImageConfig:
    """How a container of the image starts."""

    reference: str
    user: str
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()

    def document(self, layer_digests: Sequence[str]) -> bytes:
        """The image's configuration as JSON; digests are bare hexadecimal SHA-256, lowest layer first."""
        settings: dict[str, object] = {"User": self.user, "WorkingDir": "/"}
        settings["Env"] = [f"{name}={value}" for name, value in self.environment.items()]
        if self.entrypoint:
            settings["Entrypoint"] = list(self.entrypoint)
        layers = {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in layer_digests]}
        document = {"architecture": _architecture(), "os": "linux", "config": settings, "rootfs": layers}
        return json.dumps(document, sort_keys=True).encode()


def write_archive(out: Path, config: ImageConfig, layers: Sequence[Path]) -> str:
    """Writes the archive from uncompressed layers, lowest first; returns the image's identifier."""
    digests = [_digest_of(layer) for layer in layers]
    document = config.document(digests)
    identifier = hashlib.sha256(document).hexdigest()
    names = [f"{digest}/layer.tar" for digest in digests]
    manifest = [{"Config": f"{identifier}.json", "RepoTags": [config.reference], "Layers": names}]
    with tarfile.open(out, "w") as archive:
        for name, layer in zip(names, layers, strict=True):
            info = tarfile.TarInfo(name)
            info.size = layer.stat().st_size
            with layer.open("rb") as content:
                archive.addfile(info, content)
        _add_text(archive, f"{identifier}.json", document)
        _add_text(archive, "manifest.json", json.dumps(manifest).encode())
    return identifier


def _architecture() -> str:
    """This machine's architecture by the name that images use."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _add_text(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _digest_of(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
