"""How a plan would go: its timeline, where it leads, what depends on a step, and plans made once more."""

import html
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.stored import prepared
from tests.web.running import Page, paged, words

#: Only beta would do for one of the pair, and beta is full until its guest has left for gamma.
STATE = snapshot(
    cluster("c1"),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta", memory_mb=8192, free_mb=0),
    host("h3", cluster="c1", name="gamma"),
    host("h4", cluster="c2"),
    vm("a", "h1", cluster="c1", name="db-1"),
    vm("b", "h1", cluster="c1", name="db-2", migratable=False),
    vm("guest", "h2", cluster="c1", needs_mb=4096),
    vm("x", "h3", cluster="c1", name="rival"),
    group("g1", APART, "a b", cluster="c1", name="databases"),
    group("g2", APART, "a x", cluster="c1", name="rivals"),
    group("g3", APART, "guest b", cluster="c1", name="strangers"),
)


LINES = '[enforcer]\nmode = "approve"'


def recorded(page: Page) -> str:
    """A plan on record, as the enforcer leaves it: the guest leaves, then one of the pair follows."""
    plan = make_plan(STATE, "c1")
    assert [(step.vms, step.target, step.after) for step in plan.steps] == [
        (("guest",), "h3", ()),
        (("a",), "h2", (0,)),
    ]
    with page.store(HistoryStore) as store:
        store.record_plan(plan.id, "c1", msgspec.to_builtins(plan_record(plan, STATE)))
    return plan.id


def offered(page: Page) -> str:
    """The same plan, which waits for a person's word, whatever was said to it before."""
    plan = recorded(page)
    moves = (ApprovedMove(("guest",), ("h2",), "h3"), ApprovedMove(("a",), ("h1",), "h2"))
    with page.store(ApprovalStore) as store:
        store.offer("c1", plan, moves, "guest and db-1", refusal_seconds=0)
    return plan


def looked_at(page: Page, cookie: str, path: str) -> str:
    """The plan that the page has made, which its form would have carried out."""
    answer = page.ask(path, cookie=cookie)
    assert answer.status == 200, answer.text
    found = re.search(r'name="plan" value="([^"]+)"', answer.text)
    assert found
    return found[1]


def apply(page: Page, cookie: str, plan: str, on: str = "c1") -> tuple[int, str]:
    form = {"csrf": page.csrf(cookie), "plan": plan}
    answer = page.ask(f"/plan/{on}/apply", cookie=cookie, form=form)
    return answer.status, answer.text


def lead(page: Page) -> LeaseStore:
    """Be the enforcer that leads, as far as the store shows."""
    leases = LeaseStore(page.store_url, engine="default")
    assert leases.take_lease("somewhere", seconds=600) is not None
    return leases


def test_each_step_has_a_bar_that_begins_when_what_it_waits_for_has_ended(page: Page) -> None:
    recorded(page)
    text = page.ask("/plan/c1", cookie=page.session()).text
    bars = re.findall(r'<rect x="([\d.]+)" y="2" width="([\d.]+)"', text)
    assert len(bars) == 2
    (first, width), (second, _) = ([float(number) for number in bar] for bar in bars)
    assert second >= first + width - 0.2
    steps = words(text.partition("Steps of the plan")[2].partition("</table>")[0])
    assert re.search(r"1 guest beta to gamma .* Waiting", steps)
    assert re.search(r"2 db-1 alpha to beta Repairs databases after step 1", steps)


def test_before_and_after_are_what_the_migrations_make_of_it(page: Page) -> None:
    recorded(page)
    text = page.ask("/plan/c1", cookie=page.session()).text
    sides = words(text.partition("Hosts that change")[2].partition("</section>")[0])
    assert "beta 1 VM 100 % 62 % leaves: guest arrives: db-1" in sides.replace("\u2212 ", "").replace(
        "+ ", ""
    )
    assert "VMs that violate a rule 2 \u2192 0 now and afterwards" in words(text)


def test_without_a_step_the_plan_is_made_again_as_the_command_makes_it(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, cookie = recorded(page), page.session()
    text = page.ask("/plan/c1", cookie=cookie).text
    path = re.search(r'href="/ovirt-placement(/plan/c1/now[^"]*without=guest)"', text)
    assert path
    shown = words(page.ask(html.unescape(path[1]), cookie=cookie).text)
    assert f"Left out of plan {plan[:7]} Step 1: guest beta to gamma" in shown
    assert "These steps wait for it, directly or through others: Step 2: db-1 alpha to beta" in shown
    assert "no longer in it are its steps 1, 2" in shown
    assert "This plan has no step What is violated cannot be repaired" in shown
    assert "db-1 to beta: 1024 MiB needed, 0 MiB free" in shown
    # And with nothing left alone it is the command's.
    enforcer(["plan", "--cluster", "c1", "--json", "--config", str(page.folder / "placement.toml")])
    (printed,) = json.loads(capsys.readouterr().out)["clusters"]
    assert looked_at(page, cookie, f"/plan/c1/now?plan={plan}") == printed["id"] == plan
    assert "Its migrations are the same" in page.ask(f"/plan/c1/now?plan={plan}", cookie=cookie).text


def test_an_empty_plan_says_why(page: Page) -> None:
    text = page.ask("/plan/c2/now", cookie=page.session()).text
    assert "This plan has no step No rule is violated that it was to repair" in words(text)


def test_a_plan_that_was_looked_at_is_carried_out_by_who_may_while_it_fits(page: Page) -> None:
    cookie, reader = page.session(), page.session("reader@internal")
    made = looked_at(page, cookie, "/plan/c1/now")
    assert "Carry out" not in page.ask("/plan/c1/now", cookie=reader).text
    assert apply(page, reader, made)[0] == 403
    status, text = apply(page, cookie, made)
    assert (status, "no enforcer runs" in text) == (503, True)
    with closing(lead(page)):
        assert apply(page, cookie, "0123456789ab")[0] == 409
        assert apply(page, cookie, made, on="c2")[0] == 404
        assert apply(page, cookie, made)[0] == 303
        with page.store(ApprovalStore) as store:
            (approval,) = store.approvals()
        assert (approval.plan, approval.set_by) == (made, "admin@internal-authz")
        assert [(move.vms, move.target) for move in approval.moves] == [(("guest",), "h3"), (("a",), "h2")]
    outcomes = [json.loads(line)["outcome"] for line in page.audit().splitlines() if '"apply"' in line]
    assert [one.partition(":")[0] for one in outcomes] == ["refused", "failed", "refused", "done"]


@pytest.mark.parametrize("query", ["without=nothing", "plan=nothing", "without=x&plan=", "step=1"])
def test_what_is_not_there_is_not_planned(page: Page, query: str) -> None:
    status = page.ask(f"/plan/c2/now?{query}", cookie=page.session()).status
    assert status == (400 if query.startswith("step") else 404)


@pytest.mark.system
def test_a_plan_that_was_carried_out_is_taken_back_unless_it_fits_no_more(tmp_path: Path) -> None:
    left, vms = tuple(map(_left, STATE.hosts)), tuple(map(_elsewhere, STATE.vms))
    moved = msgspec.structs.replace(STATE, hosts=left, vms=vms)
    with paged(tmp_path, moved, web=LINES) as page, closing(lead(page)):
        plan, cookie = recorded(page), page.session()
        assert "Nothing can be undone yet" in page.ask(f"/plan/c1/undo?plan={plan}", cookie=cookie).text
        with page.store(Store) as store:
            way = {"cluster": "c1", "source": "h2", "target": "h3", "plan": plan, "step": 1}
            one = prepared(store, vm="guest", correlation_id="1", **way)
            store.accept(one.id)
            store.finish(one.id)
        _age(page)
        back = looked_at(page, cookie, f"/plan/c1/undo?plan={plan}")
        shown = words(page.ask(f"/plan/c1/undo?plan={plan}", cookie=cookie).text)
        assert "1 guest gamma to beta goes back to where it was" in shown
        page.engine.vms.migrate("guest", host_id="h2")
        page.engine.advance(600)
        page.until(lambda: "up on beta" in words(page.ask("/vm/guest", cookie=cookie).text))
        status, text = apply(page, cookie, back)
        assert status == 409
        assert "the cluster has changed beneath it: step 1: guest is on beta, not on gamma" in words(text)


def _elsewhere(one: Any) -> Any:
    return msgspec.structs.replace(one, host="h3") if one.id == "guest" else one


def _left(one: Any) -> Any:
    return msgspec.structs.replace(one, free_mb=6000) if one.id == "h2" else one


def _age(page: Page) -> None:
    """No cooldown of the migration is left."""
    from tests.placement.databases import database

    with database(page.store_url) as connection:
        connection.exec_driver_sql("UPDATE intents SET created = created - 7200, updated = updated - 7200")
