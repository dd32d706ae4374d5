"""The clusters of all engines on one page, as a browser fills it in."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.configuration import PASSWORD
from tests.web.browser.conftest import tab
from tests.web.browser.test_views import violations_of
from tests.web.conftest import STATE
from tests.web.running import paged_several
from tests.web.test_several import WEST

pytestmark = pytest.mark.system


def test_clusters_of_another_engine_are_filled_in_once_logged_in_there(
    chromium: Browser, tmp_path: Path, axe: str
) -> None:
    with (
        paged_several(tmp_path, WEST, STATE, first=("w1", "c1")) as (west, _),
        tab(chromium, west) as one,
    ):
        one.log_in()
        aside = one.page.locator("aside")
        expect(aside).to_contain_text("You are not logged in there")
        one.page.click("aside >> text=Log in to east")
        one.page.fill("#name", "admin@internal")
        one.page.fill("#password", PASSWORD)
        one.page.click("main button")
        expect(one.page.locator("header .brand")).to_contain_text("east")
        # Each engine has a stream of its own: neither's state is taken for the other's.
        expect(one.page.locator("aside")).to_contain_text("western")
        one.see("/")
        expect(aside.locator("table")).to_contain_text("c1")
        expect(one.page.locator("main")).to_contain_text("western")
        assert violations_of(one, axe) == []
        assert one.complaints == []
        assert one.strangers == []
