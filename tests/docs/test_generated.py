"""What is made from the code is as the code is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.generated import PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == PAGES[page](), "run make reference"
