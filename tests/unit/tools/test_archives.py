# SPDX-License-Identifier: Apache-2.0
"""An archive is what container runtimes read: a manifest, a configuration and layers named by their digests."""

import hashlib
import json
import tarfile
from pathlib import Path

from tools.setup.archives import ImageConfig, write_archive
from tools.setup.layers import Tree, write_layer

CONFIG = ImageConfig("example.local/x:1", "65532:65532", {"PATH": "/bin", "PYTHONPATH": "/app"}, ("/run",))


def layer(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / name).write_text(name)
    write_layer(tmp_path / f"{name}.tar", [Tree(folder)])
    return tmp_path / f"{name}.tar"


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        contents = {member.name: tar.extractfile(member) for member in tar}
        return {name: content.read() for name, content in contents.items() if content is not None}


def test_manifest_config_and_layers_agree(tmp_path: Path) -> None:
    layers = [layer(tmp_path, "base"), layer(tmp_path, "code")]
    identifier = write_archive(tmp_path / "image.tar", CONFIG, layers)
    content = read(tmp_path / "image.tar")
    (manifest,) = json.loads(content["manifest.json"])
    config = json.loads(content[manifest["Config"]])
    assert manifest["RepoTags"] == ["example.local/x:1"]
    assert manifest["Config"] == f"{identifier}.json"
    assert hashlib.sha256(content[manifest["Config"]]).hexdigest() == identifier
    digests = [f"sha256:{hashlib.sha256(content[name]).hexdigest()}" for name in manifest["Layers"]]
    assert digests == config["rootfs"]["diff_ids"]
    assert [content[name] for name in manifest["Layers"]] == [path.read_bytes() for path in layers]


def test_the_container_starts_as_told(tmp_path: Path) -> None:
    identifier = write_archive(tmp_path / "image.tar", CONFIG, [layer(tmp_path, "base")])
    config = json.loads(read(tmp_path / "image.tar")[f"{identifier}.json"])["config"]
    assert config["User"] == "65532:65532"
    assert config["Env"] == ["PATH=/bin", "PYTHONPATH=/app"]
    assert config["Entrypoint"] == ["/run"]


def test_same_inputs_give_same_bytes(tmp_path: Path) -> None:
    base = layer(tmp_path, "base")
    write_archive(tmp_path / "1.tar", CONFIG, [base])
    write_archive(tmp_path / "2.tar", CONFIG, [base])
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()
