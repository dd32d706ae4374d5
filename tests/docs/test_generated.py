"""What is made from the code is as the code is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.generated import PAGES

#: All commands and records are read for it.
SLOW = "json.schema.json"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.system if page.name == SLOW else ())
        for page in PAGES
    ],
)
def test_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == PAGES[page](), "run make reference"
