# SPDX-License-Identifier: Apache-2.0
"""The base layer of the images: a minimal Debian made from the machine's own package sources.

It holds a C++ compiler and Python's headers, which vLLM needs at run time: it compiles kernels with the first request.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.setup.environments import interpreter
from tools.setup.layers import Tree, write_layer
from tools.setup.packages import install_packages
from tools.setup.process import SetupError, Word, output_of, run
from tools.setup.store import Result, key_of

RECIPE: Final = "1"
SUITE: Final = "bookworm"
PACKAGES: Final = ("ca-certificates", "g++", "libgomp1", "libnuma1", "libpython3.11-dev", "python3")
USER_ID: Final = 65532
WITHOUT: Final = (
    "dev/*",
    "proc/*",
    "sys/*",
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    "var/log/*",
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/locale/*",
)
"""Not packed: what a container mounts over, what apt can fetch again, and what nobody reads in a pod."""


def base_layer() -> Result:
    """The layer below all others of the control-plane image."""
    return Result(
        folder="layers",
        name="base",
        key=key_of(RECIPE, SUITE, *PACKAGES, *WITHOUT),
        about="a minimal Debian for the images by debootstrap (600 MB, 1 to 4 minutes)",
        build=_build,
        suffix=".tar",
        keep=2,
    )


def mirror_of(sources: Iterable[str], suite: str) -> str | None:
    """The first archive in the texts of apt's source files that carries `suite`.

    Reads both forms, `deb [options] URI SUITE ...` and the `Types:/URIs:/Suites:` paragraphs.
    """
    for text in sources:
        for line in text.splitlines():
            words = re.sub(r"\[.*?\]", "", line).split()
            if len(words) > 2 and words[0] == "deb" and words[2] == suite:
                return words[1]
        for paragraph in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^(\w[\w-]*):[ \t]*(.*)$", paragraph, flags=re.MULTILINE))
            if suite in fields.get("Suites", "").split() and "deb" in fields.get("Types", "").split():
                return str(fields["URIs"].split()[0])
    return None


def _build(aside: Path) -> None:
    install_packages("debootstrap")
    root = aside.with_name(f"{aside.name}.root")
    shutil.rmtree(root, ignore_errors=True)
    try:
        _debootstrap(root)
        _name_user(root)
        library = root / "usr" / "lib" / "python3.11"
        compile_all: list[Word] = [
            interpreter(),
            "-m",
            "compileall",
            "-q",
            "-f",
            "--invalidation-mode",
            "unchecked-hash",
        ]
        run("base", [*compile_all, "-s", root, "-p", "/", library])
        write_layer(aside, [Tree(root, without=WITHOUT, keep_owners=True)])
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _debootstrap(root: Path) -> None:
    include = f"--include={','.join(PACKAGES)}"
    proxy = _proxy_of_apt()
    env = {"http_proxy": proxy} if proxy else {}
    mirror = mirror_of(_source_files(), SUITE)
    if mirror is None:
        raise SetupError(f"base: no package source in /etc/apt carries {SUITE}, from which the images are made")
    run("base", ["debootstrap", "--variant=minbase", include, SUITE, root, mirror], env=env)


def _source_files() -> list[str]:
    folder = Path("/etc/apt")
    candidates = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [path.read_text() for path in candidates if path.suffix in {".list", ".sources"} and path.is_file()]


def _proxy_of_apt() -> str | None:
    found = re.search(r'"(.+)"', output_of(["apt-config", "dump", "Acquire::http::Proxy"]) or "")
    return found[1] if found else None


def _name_user(root: Path) -> None:
    """Gives the user of the containers a name, since some libraries ask for it."""
    for name, line in (
        ("passwd", f"gearshift:x:{USER_ID}:{USER_ID}::/nonexistent:/usr/sbin/nologin\n"),
        ("group", f"gearshift:x:{USER_ID}:\n"),
    ):
        with (root / "etc" / name).open("a") as accounts:
            accounts.write(line)
