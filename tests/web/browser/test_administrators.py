"""Administrators in their browsers: an approval, a failing rack, and the clusters of all engines."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ovirt_enforcer.cli.main import main as enforcer
from tests.configuration import PASSWORD
from tests.processes import Forked
from tests.web import conftest, test_plans
from tests.web.browser.conftest import Tab, tab, violations_of
from tests.web.running import Page, paged, paged_several
from tests.web.test_several import WEST

pytestmark = pytest.mark.system

APPROVE = "button >> text=Approve 2 migrations"
#: The page of this module has it in its configuration.
LINES = '[[ha.domains]]\nname = "rack-1"\nhosts = ["alpha", "beta"]\n'


def test_hosts_and_racks_fail_by_a_click(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        one.log_in()
        one.see("/ha/c1")
        one.page.check("text=alpha")
        expect(one.page.locator("#outcome")).to_contain_text("If 1 host failed")
        one.page.check("text=rack-1")
        expect(one.page.locator("#outcome")).to_contain_text("If 2 hosts failed")
        expect(one.page.locator("#outcome")).to_contain_text("no host is left")
        assert one.page.url.endswith("domain=rack-1&host=h1")


def test_an_approved_plan_is_carried_out_and_watched(chromium: Browser, tmp_path: Path) -> None:
    with paged(tmp_path, test_plans.STATE, web='[enforcer]\nmode = "approve"') as page:
        words, log = ["run", "--config", str(tmp_path / "placement.toml")], tmp_path / "enforcer.log"
        with Forked(enforcer, words, log, os.environ) as process, tab(chromium, page) as one:
            try:
                _approve_and_watch(page, one)
            finally:
                process.terminate()


def _approve_and_watch(page: Page, one: Tab) -> None:
    one.log_in()
    cookie = page.session()
    page.until(lambda: "Waiting for approval" in page.ask("/plan/c1", cookie=cookie).text)
    one.see("/plan/c1")
    one.page.click(APPROVE)
    expect(one.page.locator("main")).to_contain_text("approved plan")
    one.see("/cluster/c1")

    def repaired() -> bool:
        page.engine.advance(5)
        return "No running VM violates a rule here" in one.page.content()

    page.until(repaired)


def test_clusters_of_another_engine_are_filled_in_once_logged_in_there(
    chromium: Browser, tmp_path: Path, axe: str
) -> None:
    with (
        paged_several(tmp_path, WEST, conftest.STATE, first=("w1", "c1")) as (west, _),
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
