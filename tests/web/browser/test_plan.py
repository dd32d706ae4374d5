"""A plan as a person decides on it: a step is skipped, the plan refused, in light and dark."""

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser.conftest import tab, violations_of
from tests.web.running import Page
from tests.web.test_plans import STATE as COURSE
from tests.web.test_plans import offered

pytestmark = pytest.mark.system

STATE = COURSE


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_a_plan_is_readable_and_a_step_is_skipped(
    chromium: Browser, served: Page, axe: str, scheme: str, width: int
) -> None:
    offered(served)
    with tab(chromium, served, scheme=scheme, width=width) as one:
        one.log_in()
        one.see("/plan/c1")
        assert one.page.locator("svg.gantt rect").count() == 2
        assert violations_of(one, axe) == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        one.page.click("text=Leave out step 1")
        expect(one.page.locator("main")).to_contain_text("These steps wait for it")
        expect(one.page.locator("main")).to_contain_text("This plan has no step")
        assert violations_of(one, axe) == []
        one.see("/plan/c1")
        one.page.click("text=Refuse…")
        one.page.fill("#reason", "not tonight")
        one.page.click("button >> text=Refuse plan")
        expect(one.page.locator("main")).to_contain_text("Refused by admin@internal")
        expect(one.page.locator("main")).to_contain_text("not tonight")
