"""Maintenance on the page: what it would be, as the command says it; begun, paused, resumed and stopped."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.store.enforcer.maintenance import MaintenanceRun, MaintenanceStore
from ovirt_simulator.core.entities import BY_NAME, user_id
from tests.builders import cluster, host, snapshot, vm
from tests.portal import Portal
from tests.web.running import HOSTILE, Answer, Page, paged
from tests.web.test_plans import lead

LINES = '[enforcer]\nmode = "approve"'
STATE = snapshot(
    cluster("c1"),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    host("h3", cluster="c1", name=HOSTILE),
    host("h4", cluster="c2", name="lonely"),
    vm("a", "h1", cluster="c1", name=HOSTILE),
    vm("b", "h2", cluster="c1", name="web"),
    vm("x", "h4", cluster="c2", name="pinned", migratable=False),
)
TICKED = "/maintenance/c1?host=h1&host=h2"


def begin(page: Page, cookie: str, path: str = TICKED, **more: str) -> Answer:
    """Look at the plan, and begin the run by its form."""
    hosts = re.findall(r'name="hosts" value="([^"]*)"', page.ask(path, cookie=page.session()).text)
    form = {"csrf": page.csrf(cookie), "hosts": hosts[0] if hosts else "h4", "work": "nothing"}
    form |= {"return": "none", "stop": ""} | more
    return page.ask(f"{path.partition('?')[0]}/begin", cookie=cookie, form=form)


def order(page: Page, cookie: str, act: str, run: str) -> Answer:
    return page.ask(f"/maintenance/c1/{act}", cookie=cookie, form={"csrf": page.csrf(cookie), "run": run})


def runs(page: Page) -> tuple[MaintenanceRun, ...]:
    with page.store(MaintenanceStore) as store:
        return store.runs()


def test_hosts_that_are_ticked_get_the_rounds_that_the_command_gives_them(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No maintenance run" in page.seen("/maintenance/c1")
    text = page.seen(TICKED)
    enforcer(["maintenance", "plan", "alpha", "beta", "--config", str(page.folder / "placement.toml")])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].partition(": ")[2] in text
    moves = [line.partition(". ")[2] for line in printed if re.match(r" +\d+\. ", line)]
    assert len(moves) >= 2
    assert all(move.strip() in text for move in moves)
    assert re.findall(r"Round \d: \S+", "\n".join(printed)) == re.findall(r"Round \d: \S+", text)


def test_a_host_without_a_round_is_named_with_what_would_help_and_not_begun(page: Page) -> None:
    path = "/maintenance/c2?host=h4"
    text = page.seen(path)
    assert "No round for lonely" in text
    assert "With pinned stopped, there is a round for lonely as well" in text
    assert "Begin this run" not in text
    with closing(lead(page)):
        answer = begin(page, page.session(), path)
    assert answer.status == 409
    assert "no round for lonely" in answer.text
    assert "Begin this run" in page.seen(f"{path}&stop=pinned")
    assert page.ask(f"{path}&stop=nobody", cookie=page.session()).status == 400
    assert page.ask("/maintenance/c2?host=h1", cookie=page.session()).status == 404
    assert runs(page) == ()


@pytest.mark.system
def test_a_run_is_begun_paused_resumed_and_stopped_by_who_may(tmp_path: Path) -> None:
    with paged(tmp_path, STATE, web=LINES) as page:
        ann, bob, reader = page.session(), page.session(), page.session("reader@internal")
        assert begin(page, ann).status == 503  # nobody would carry it out
        with closing(lead(page)):
            assert "Begin this run" not in page.ask(TICKED, cookie=reader).text
            assert begin(page, reader).status == 403
            own = Portal(page.engine).grant(
                BY_NAME["ClusterAdmin"].id, user_id("reader@internal"), cluster="c2"
            )
            assert begin(page, reader).status == 403
            Portal(page.engine).revoke(own.id)
            answer = begin(page, ann)
            assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/maintenance/c1")
            (run,) = runs(page)
            assert (run.requested_by, run.request.work) == ("admin@internal-authz", "nothing")
            assert sorted(one.host for one in run.hosts) == ["h1", "h2"]
            second = begin(page, bob, hosts="h3")
            assert second.status == 409
            assert f"maintenance run {run.id} by admin@internal-authz is under way" in second.text
        shown = page.seen("/maintenance/c1")
        assert f"Run {run.id[:12]} running Pause Stop Requested by admin@internal-authz" in shown
        assert "alpha waits" in shown
        assert "Maintenance of 2 hosts is running" in page.seen("/cluster/c1")
        assert "Pause this run" not in page.ask("/maintenance/c1", cookie=reader).text
        assert order(page, reader, "pause", run.id).status == 403
        assert order(page, ann, "pause", run.id).status == 303
        late = order(page, bob, "pause", run.id)
        assert (late.status, f"maintenance run {run.id} is paused" in late.text) == (409, True)
        assert order(page, bob, "resume", run.id).status == 303
        assert order(page, ann, "stop", run.id).status == 303
        assert order(page, bob, "stop", run.id).status == 409
        assert order(page, bob, "stop", "ffffff").status == 409
        assert order(page, bob, "hold", run.id).status == 404
        assert f"Run {run.id[:12]} stopping" in page.seen("/maintenance/c1")
        said = [json.loads(line) for line in page.audit().splitlines()]
        done = [(one["act"], one["outcome"]) for one in said if one["outcome"] == "done"]
        acts = ["maintenance", "maintenance pause", "maintenance resume", "maintenance stop"]
        assert [act for act, _ in done if act.startswith("maintenance")] == acts


@pytest.mark.system
def test_what_is_no_work_is_refused(page: Page) -> None:
    cookie = page.session()
    for more in ({"work": "dance"}, {"return": "some"}, {"hosts": ""}, {"stop": "nobody"}):
        assert begin(page, cookie, **more).status == 400, more
    answer = begin(page, cookie, hosts="h4")
    assert answer.status == 409
    assert "Cluster c1 has no host h4" in answer.text
