"""Plans that wait for a word: how they would go and lead to, who approves, and what is made once more."""

import html
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.portal import Portal
from tests.stored import prepared
from tests.web.running import HOSTILE, Page, paged, words

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


@contextmanager
def approvals(page: Page) -> Iterator[ApprovalStore]:
    with page.store(ApprovalStore) as store:
        yield store


def offer(page: Page, digest: str, target: str = "h2") -> None:
    """Let a plan wait, as the enforcer does; its document says that a moves to this host."""
    made = make_plan(STATE, "c1")
    plan = replace(made, steps=(replace(made.steps[-1], target=target, after=()),))
    document = msgspec.to_builtins(plan_record(plan, STATE))
    document["steps"][0]["vms"][0]["name"] = HOSTILE
    with page.store(HistoryStore) as store:
        store.record_plan(digest, "c1", document)
    with approvals(page) as store:
        store.offer("c1", digest, (ApprovedMove(("a",), ("h1",), target),), "a to there")


def approve(page: Page, cookie: str, plan: str, on: str = "c1") -> tuple[int, str]:
    form = {"csrf": page.csrf(cookie), "plan": plan}
    answer = page.ask(f"/plan/{on}/approve", cookie=cookie, form=form)
    return answer.status, answer.text


def test_a_plan_shows_each_migration_with_its_reason(page: Page) -> None:
    offer(page, "plan1")
    text = page.ask("/plan/c1", cookie=page.session()).text
    assert "Waiting for approval" in text
    assert "beta" in text
    assert "databases" in text
    assert "<img" not in text
    assert "&lt;img" in text
    assert "Approve 1 migration" in text
    assert "No plan" in page.ask("/plan/c2", cookie=page.session()).text


def test_only_who_may_migrate_there_approves(page: Page) -> None:
    offer(page, "plan2")
    reader = page.session("reader@internal")
    assert "Approve 1 migration" not in page.ask("/plan/c1", cookie=reader).text
    assert approve(page, reader, "plan2")[0] == 403
    granted = Portal(page.engine).grant(BY_NAME["ClusterAdmin"].id, user_id("reader@internal"), cluster="c2")
    # By the address of a cluster that is theirs, the plan of another one is not to be had.
    assert approve(page, reader, "plan2", on="c2")[0] == 409
    Portal(page.engine).revoke(granted.id)
    with approvals(page) as store:
        assert store.approvals() == ()
        assert [one.plan for one in store.waiting()] == ["plan2"]


def refuse(page: Page, cookie: str, plan: str, reason: str = "") -> tuple[int, str]:
    form = {"csrf": page.csrf(cookie), "plan": plan, "reason": reason}
    answer = page.ask("/plan/c1/refuse", cookie=cookie, form=form)
    return answer.status, answer.text


def test_a_refused_plan_waits_no_more_and_says_by_whom(page: Page) -> None:
    offer(page, "plan5")
    first, second = page.session(), page.session()
    assert refuse(page, page.session("reader@internal"), "plan5")[0] == 403
    assert refuse(page, first, "plan5", f"backup tonight {HOSTILE}")[0] == 303
    text = page.ask("/plan/c1", cookie=second).text
    assert "Refused by admin@internal-authz" in text
    assert "admin@internal-authz on " in text
    assert "refused plan plan5 in cluster c1: backup tonight &lt;img" in text
    # Who looked at it before has no say any more, and the enforcer, which wants it still, offers it in vain.
    status, said = approve(page, second, "plan5")
    assert status == 409
    assert "does not wait any more" in said
    offer(page, "plan5")
    assert "Waiting for approval" not in page.ask("/plan/c1", cookie=second).text
    offer(page, "plan6", "h3")
    assert "Waiting for approval" in page.ask("/plan/c1", cookie=second).text
    assert refuse(page, second, "plan5")[0] == 409
    lines = [json.loads(line) for line in page.audit().splitlines() if '"refuse"' in line]
    assert [one["outcome"].partition(":")[0] for one in lines] == ["refused", "done", "refused"]


def test_two_administrators_look_at_one_plan_that_changes(page: Page) -> None:
    offer(page, "plan3", "h2")
    first, second = page.session(), page.session()
    offer(page, "plan4", "h3")
    status, text = approve(page, first, "plan3")
    assert status == 409
    assert "the cluster has changed, and plan plan4 waits in its place" in text
    assert "to beta" in text
    assert "to gamma" in text
    assert approve(page, second, "plan4")[0] == 303
    status, text = approve(page, first, "plan4")
    assert status == 409
    assert "does not wait any more" in text
    with approvals(page) as store:
        (approval,) = store.approvals()
    assert (approval.plan, approval.set_by) == ("plan4", "admin@internal-authz")
    lines = [json.loads(line) for line in page.audit().splitlines() if '"approve"' in line]
    assert [(one["plan"], one["outcome"].partition(":")[0]) for one in lines[-3:]] == [
        ("plan3", "refused"),
        ("plan4", "done"),
        ("plan4", "refused"),
    ]


def test_who_does_not_know_of_the_others_pause_is_refused(page: Page) -> None:
    ann, bob = page.session(), page.session()
    assert page.act("/cluster/c2/pause", ann, hours="", reason="storage").status == 303
    late = page.act("/cluster/c2/pause", bob, hours="1")
    assert (late.status, "paused cluster c2" in late.text, "(storage)" in late.text) == (409, True, True)
    shown = r'/cluster/c2/resume".*?name="was" value="([^"]+)"'
    page.until(lambda: re.search(shown, page.ask("/cluster/c2", cookie=bob).text) is not None)
    (was, *_) = re.findall(shown, page.ask("/cluster/c2", cookie=bob).text)
    assert page.act("/cluster/c2/resume", bob, was=was).status == 303
    assert page.act("/cluster/c2/pause", bob, hours="1").status == 303
    late = page.act("/cluster/c2/resume", ann, was=was)
    assert (late.status, "paused cluster c2" in late.text) == (409, True)
    assert page.act("/cluster/c2/resume", bob).status == 303


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
    text = page.ask(f"/plans/c1/{recorded(page)}", cookie=page.session()).text
    bars = re.findall(r'<rect x="([\d.]+)" y="2" width="([\d.]+)"', text)
    assert len(bars) == 2
    (first, width), (second, _) = ([float(number) for number in bar] for bar in bars)
    assert second >= first + width - 0.2
    steps = words(text.partition("Steps of the plan")[2].partition("</table>")[0])
    assert re.search(r"1 guest beta to gamma .* Waiting", steps)
    assert re.search(r"2 db-1 alpha to beta Repairs databases after step 1", steps)


def test_before_and_after_are_what_the_migrations_make_of_it(page: Page) -> None:
    text = page.ask(f"/plans/c1/{recorded(page)}", cookie=page.session()).text
    sides = words(text.partition("Hosts that change")[2].partition("</section>")[0])
    assert "beta 1 VM 100 % 62 % leaves: guest arrives: db-1" in sides.replace("\u2212 ", "").replace(
        "+ ", ""
    )
    assert "VMs that violate a rule 2 \u2192 0 now and afterwards" in words(text)


def test_without_a_step_the_plan_is_made_again_as_the_command_makes_it(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, cookie = recorded(page), page.session()
    text = page.ask(f"/plans/c1/{plan}", cookie=cookie).text
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
        assert (apply(page, cookie, "0123456789ab")[0], apply(page, cookie, made, on="c2")[0]) == (409, 404)
        assert apply(page, cookie, made)[0] == 303
        with page.store(ApprovalStore) as store:
            approval = next(one for one in store.approvals() if one.plan == made)
        assert approval.set_by == "admin@internal-authz"
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
    moved = replace(STATE, hosts=left, vms=vms)
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
    return replace(one, host="h3") if one.id == "guest" else one


def _left(one: Any) -> Any:
    return replace(one, free_mb=6000) if one.id == "h2" else one


def _age(page: Page) -> None:
    """No cooldown of the migration is left."""
    from tests.placement.databases import database

    with database(page.store_url) as connection:
        connection.exec_driver_sql("UPDATE intents SET created = created - 7200, updated = updated - 7200")
