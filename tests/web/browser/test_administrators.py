"""Administrators in their browsers: two at one plan, rights that come and go, an approval, a failing rack."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.portal import Portal
from tests.processes import Forked
from tests.web.browser.conftest import Tab, tab
from tests.web.running import Page, paged
from tests.web.test_plans import STATE, offer

pytestmark = pytest.mark.system

READER = "reader@internal"
APPROVE = "button >> text=Approve 1 migration"
RACK = '[[ha.domains]]\nname = "rack-1"\nhosts = ["alpha", "beta"]\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with paged(tmp_path_factory.mktemp("page"), STATE, web=RACK) as found:
        yield found


def test_of_two_administrators_one_decides(chromium: Browser, served: Page) -> None:
    offer(served, "plan1")
    with tab(chromium, served) as first, tab(chromium, served) as second:
        for one in (first, second):
            one.log_in()
            one.see("/plan/c1")
        first.page.click(APPROVE)
        expect(first.page.locator("main")).to_contain_text("approved plan plan1 in cluster c1")
        second.page.click(APPROVE)
        expect(second.page.locator("main")).to_contain_text("does not wait any more")
        assert first.complaints == []


def test_rights_are_given_and_withdrawn(chromium: Browser, served: Page) -> None:
    offer(served, "plan2", "h3")
    with tab(chromium, served) as one:
        one.log_in(READER)
        one.see("/plan/c1")
        expect(one.page.locator("main")).to_contain_text("Waiting for approval")
        assert one.page.locator(APPROVE).count() == 0
        role = BY_NAME["ClusterAdmin"].id
        granted = Portal(served.engine).grant(role, user_id(READER), cluster="c1")
        one.log_out()
        one.log_in(READER)
        one.see("/plan/c1")
        expect(one.page.locator(APPROVE)).to_be_visible()
        Portal(served.engine).revoke(granted.id)
        one.page.click(APPROVE)
        expect(one.page.locator("main")).to_contain_text("permit")
        one.see("/plan/c1")
        expect(one.page.locator("main")).to_contain_text("Waiting for approval")


def test_a_rack_fails_by_a_click(chromium: Browser, served: Page) -> None:
    with tab(chromium, served) as one:
        one.log_in()
        one.see("/ha/c1")
        one.page.check("text=rack-1")
        expect(one.page.locator("#outcome")).to_contain_text("If 2 hosts failed")
        assert one.complaints == []
        assert one.strangers == []


def test_an_approved_plan_is_carried_out_and_watched(chromium: Browser, tmp_path: Path) -> None:
    with paged(tmp_path, STATE, web='[enforcer]\nmode = "approve"') as page:
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
    assert one.complaints == []
