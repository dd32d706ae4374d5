"""The index of pages has each page once, in a group: the site's navigation is made of it."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.test_links import PAGES, links_of
from tests.paths import CHECKOUT

INDEX = CHECKOUT / "docs" / "index.md"


def test_each_page_is_in_one_group() -> None:
    _, *groups = INDEX.read_text().split("\n## ")
    assert [group.partition("\n")[0] for group in groups] == [
        "Start",
        "Use",
        "Operate",
        "Reference",
        "Develop",
    ]
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+\.md)\)", "\n".join(groups), re.MULTILINE)
    assert set(listed) <= set(links_of(INDEX))
    found = Counter((INDEX.parent / page).resolve() for page in listed)
    assert found == Counter(page for page in PAGES if page != INDEX)
