"""Tests README.md and the pages of docs: links are valid, and sessions show the current columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailgate.gateway.catalog.relations.item_status import LISTS
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md"), *ROOT.glob("tailgate/examples/*/README.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub builds them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    wrong = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text())):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            wrong.append(link)
    assert not wrong


def test_show_sources_of_the_session() -> None:
    text = (ROOT / "README.md").read_text()
    header = text.split("SHOW SOURCES;\n", 1)[1].split("\n", 1)[0]
    assert [c.strip() for c in header.split("|")] == [f.name for f in LISTS["sources"][1]]
