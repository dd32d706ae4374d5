"""Plans that wait for a person's word: shown, approved of by who may, and refused once they are of old."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.portal import Portal
from tests.web.running import HOSTILE, Page

STATE = snapshot(
    cluster("c1"),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    host("h3", cluster="c1", name="gamma"),
    host("h4", cluster="c2"),
    vm("a", "h1", cluster="c1", name=HOSTILE),
    vm("b", "h1", cluster="c1", name="db-2", migratable=False),
    vm("x", "h4", cluster="c2"),
    group("g1", APART, "a b", cluster="c1", name="databases"),
)


@contextmanager
def approvals(page: Page) -> Iterator[ApprovalStore]:
    with page.store(ApprovalStore) as store:
        yield store


def offer(page: Page, digest: str, target: str = "h2") -> None:
    """Let a plan wait, as the enforcer does; its document says that a moves to this host."""
    made = make_plan(STATE, "c1")
    (step,) = made.steps
    plan = replace(made, steps=(replace(step, target=target),))
    document = msgspec.to_builtins(plan_record(plan, STATE))
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
