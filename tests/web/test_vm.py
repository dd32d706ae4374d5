"""A VM that does not run: what the proxy answered last about it, and what would make room for it."""

import html
import re
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_enforcer.plans import room_for
from ovirt_placement.cli.main import main as placement
from ovirt_placement.planning.plan import NEVER
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import APART, cluster, group, host, rule, snapshot, vm
from tests.integration.test_last_decisions import record_decision
from tests.web.running import HOSTILE, Page, paged

#: Long before anything was decided.
OLD = "2020-01-01T00:00:00+00:00"

#: The waiting VM fits on neither host as things are; on beta it does once its guest has left.
STATE = snapshot(
    cluster("c1", ha_reservation=True),
    host("h1", cluster="c1", name="alpha", memory_mb=16384, free_mb=4096),
    host("h2", cluster="c1", name="beta", memory_mb=16384, free_mb=4096),
    vm("keeps", "h1", cluster="c1", needs_mb=8192, migratable=False),
    vm("guest", "h2", cluster="c1", needs_mb=2048),
    vm("front", "h1", cluster="c1", ha=True, ha_priority=50, needs_mb=512),
    vm("back", "h1", cluster="c1", ha=True, ha_priority=50, needs_mb=512, name=HOSTILE),
    vm("waits", cluster="c1", needs_mb=5120, name="waiting"),
    group("g1", APART, "waits keeps", cluster="c1", name="strangers"),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    after = rule("front-after-back", "restart_after", "front", other_vms="back", cluster="c1")
    with closing(RuleStore(f"sqlite:///{folder}/store.db", engine="default")) as store:
        store.change(lambda _: RuleChange(put=(after,)), changed_by="ann")
    with paged(folder, STATE, web=f'decisions = "{folder}/decisions.jsonl"') as found:
        yield found


def test_without_a_record_the_page_says_why(page: Page) -> None:
    """Asked first: no proxy has run yet that would have written one."""
    assert "Not known: " in page.seen("/vm/guest")


def decide(page: Page, vm: str) -> Path:
    """A unit refuses alpha now; the record of that."""
    record = page.folder / "decisions.jsonl"
    record_decision(record, "runFilters", vm, time=time.time(), hosts=["h1", "h2"], fallen={"h1": ["Picky"]})
    return record


def test_what_the_proxy_answered_last_stands_with_the_vm(page: Page) -> None:
    decide(page, "waits")
    heading = re.compile(r"runFilters \([\d.]+ ms, request [\w-]+\): 1 of 2 hosts passed")
    page.until(lambda: heading.search(page.seen("/vm/waits")) is not None)
    assert "alpha dropped no reason is recorded Picky beta passed" in page.seen("/vm/waits")
    assert "Its record has no decision about this VM." in page.seen("/vm/guest")


def test_why_then_is_answered_as_the_command_answers_it(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    record = decide(page, "guest")
    soon = datetime.now(UTC) + timedelta(seconds=60)
    moment = soon.isoformat(timespec="seconds")
    asked = ["why", "guest", "--at", moment, "--decisions", str(record)]
    placement([*asked, "--config", str(page.folder / "placement.toml")])
    printed = capsys.readouterr().out
    text = page.seen(f"/vm/guest/then?at={quote(moment)}")
    decided = re.search(r"\S+ \S+ runFilters \(.*1 of 2 hosts passed", printed)
    assert decided
    assert decided[0] in text
    assert re.search(r"The last decision until then, \d+ s before", printed)
    assert re.search(r"The last decision until then, \d+ s before", text)
    assert "alpha dropped no reason is recorded Picky beta passed" in text
    # Before that there was none.
    early = page.seen(f"/vm/guest/then?at={quote((soon - timedelta(hours=2)).isoformat())}")
    assert "The next one, " in early
    assert "The last decision until then" not in early
    assert page.ask("/vm/guest/then?at=soon", cookie=page.session()).status == 400
    assert "yesterday 02:13" in page.ask("/vm/guest/then", cookie=page.session()).text


def test_a_step_of_a_plan_leads_to_why_it_was_planned_then(page: Page) -> None:
    plan = room_for(STATE, STATE.vm_by_id["waits"], deadline=NEVER).plan
    with page.store(HistoryStore) as store:
        store.record_plan(plan.id, "c1", msgspec.to_builtins(plan))
    history = page.ask("/history?q=guest", cookie=page.session()).text
    link = re.search(r'href="/ovirt-placement(/vm/guest/then\?at=[^"]+)"', history)
    assert link
    text = page.seen(html.unescape(link[1]))
    assert "The last plan until then: " in text
    assert "guest beta to alpha Not carried out Why" in text
    assert "makes room" in text
    assert "No plan of the enforcer concerned this VM" in page.seen(f"/vm/guest/then?at={quote(OLD)}")


def test_a_vm_that_starts_nowhere_leads_to_what_would_make_room(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Make room" in page.seen("/vm/waits")
    text = page.seen("/vm/waits/room")
    enforcer(["make-room", "waiting", "--config", str(page.folder / "placement.toml")])
    printed = capsys.readouterr().out
    assert "VM waiting can start on host beta after 1 migration" in printed
    assert "It can start on host beta after these migrations of other VMs." in text
    assert "1 guest beta to alpha makes room" in text


def test_a_vm_that_runs_needs_no_room(page: Page) -> None:
    assert "Make room" not in page.seen("/vm/guest")
    assert page.ask("/vm/guest/room", cookie=page.session()).status == 409
    assert page.ask("/vm/nothing/room", cookie=page.session()).status == 404


def test_the_restart_order_is_shown_with_what_the_engine_does_not_wait_for(page: Page) -> None:
    named = HOSTILE.replace("\u202e", "\\u202e")
    order = page.seen("/ha/c1").partition("Restart order")[2]
    assert re.search(rf"50 {re.escape(named)} , front", order) or f"50 {named}, front" in order
    assert "may restart too early by" in order
    assert "front-after-back" in order
    own = page.seen("/vm/front")
    assert "restart priority 50; if alpha fails, front is number 2 of 2 to restart" in own
    assert f"front is to restart after {named}" in own
    assert "Restart restart priority" not in page.seen("/vm/guest")
