# SPDX-License-Identifier: Apache-2.0
"""The mirror is read from both forms of apt's sources."""

import pytest

from tools.setup.rootfs import mirror_of

ONE_LINE = """# deb http://comment.invalid/debian bookworm main
deb [arch=amd64 signed-by=/k] http://a.invalid/debian bookworm main
"""
PARAGRAPHS = """Types: deb
# a comment
URIs: http://b.invalid/debian http://spare.invalid/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://c.invalid/security
Suites: bookworm-security
"""
SOURCE_ONLY = "Types: deb-src\nURIs: http://d.invalid/debian\nSuites: bookworm\n"
OTHER = "deb http://e.invalid/apt nodistro main\n"


@pytest.mark.parametrize(
    ("texts", "suite", "expected"),
    [
        ([ONE_LINE], "bookworm", "http://a.invalid/debian"),
        ([PARAGRAPHS], "bookworm", "http://b.invalid/debian"),
        ([PARAGRAPHS], "bookworm-security", "http://c.invalid/security"),
        ([OTHER, SOURCE_ONLY, PARAGRAPHS], "bookworm", "http://b.invalid/debian"),
        ([OTHER, SOURCE_ONLY], "bookworm", None),
    ],
)
def test_mirror(texts: list[str], suite: str, expected: str | None) -> None:
    assert mirror_of(texts, suite) == expected
