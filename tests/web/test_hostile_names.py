"""Names that would be markup, templates or scripts, wherever something is named: each view shows text."""

import json
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from urllib.parse import quote

import msgspec
import pytest

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.maintenance import MaintenanceRequest, MaintenanceStore
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.orders import ApprovalStore, ApprovedMove, PauseStore
from tests.builders import APART, cluster, group, host, key, label, snapshot, vm
from tests.stored import put_keys, run_of
from tests.web.running import HOSTILE, Page, addresses, paged

pytestmark = pytest.mark.system

#: What closes an attribute, a title, a script, a JSON in a page.
OTHER = "</title></textarea></script><script>alert(1)</script>' onfocus=alert(1) x='\u2066"
LONG = "<b>" + "n" * 252

STATE = snapshot(
    cluster("c1", name=HOSTILE, ha_reservation=True),
    host("h1", cluster="c1", name=HOSTILE),
    host("h2", cluster="c1", name=OTHER),
    vm("a", "h1", cluster="c1", name=HOSTILE, ha=True),
    vm("b", "h1", cluster="c1", name=OTHER),
    vm("l", "h2", cluster="c1", name=LONG),
    vm("big", cluster="c1", name=OTHER + "2", needs_mb=60000),
    msgspec.structs.replace(label("t", "a", "h1"), name=HOSTILE),
    group("g1", APART, "a b", cluster="c1", name=HOSTILE),
    group("g2", APART, "a l", cluster="c1", name=LONG, vm_labels=("t",)),
)
IDS = {"vm": "a", "host": "h1", "hosts": "h1", "group": "g1", "vms": "a"}
#: Queries that make a view say more.
QUERIES = {
    "/ha/{name}": "?host=h1",
    "/plan/{name}/now": "?without=b",
    "/vm/{name}/then": "?at=2026-01-01T00:00:00%2B00:00",
    "/keys/set": f"?level=server&on=a&name={quote(OTHER[:20])}",
    "/keys/hosts": f"?cluster=c1&name={quote(HOSTILE)}",
    "/maintenance/{name}": f"?host=h1&stop={quote(OTHER)}&return=all",
    "/search": f"?q={quote(HOSTILE)}",
    "/history": f"?q={quote(OTHER)}",
    "/api/v1/ha-check": "?cluster=c1&hosts=h1",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with paged(tmp_path_factory.mktemp("page"), STATE, web='[enforcer]\nmode = "approve"') as found:
        store = f"sqlite:///{found.folder}/store.db"
        plan = make_plan(STATE, "c1")
        assert plan.steps
        with closing(HistoryStore(store, engine="default")) as history:
            history.record_plan(plan.id, "c1", msgspec.to_builtins(plan_record(plan, STATE)))
        with closing(ApprovalStore(store, engine="default")) as approvals:
            moves = tuple(ApprovedMove(step.vms, ("h1",), step.target) for step in plan.steps)
            approvals.offer("c1", plan.id, moves, HOSTILE, refusal_seconds=0)
        with closing(PauseStore(store, engine="default")) as pauses:
            pauses.pause("c1", cluster_name=HOSTILE, reason=OTHER, set_by=HOSTILE, seconds=None)
        with closing(KeyStore(store, engine="default")) as keys:
            named = [("cluster", "c1"), ("server", "a"), ("vdc", "9" * 8)]
            put_keys(keys, [key(OTHER[:20], level=level, resource=on) for level, on in named], set_by=HOSTILE)
        with closing(MaintenanceStore(store, engine="default")) as runs:
            request = MaintenanceRequest(stop_vms=("a",))
            of = {"cluster": "c1", "cluster_name": HOSTILE, "requested_by": OTHER}
            runs.request(run_of(HOSTILE, OTHER, request=request, **of))
        yield found


def test_each_view_shows_names_as_text(page: Page) -> None:
    cookie = page.session()
    for address in addresses():
        if address.method != "GET" or address.path == "/events":
            continue
        named = IDS.get(address.path.removeprefix("/api/v1").split("/")[1], "c1")
        path = address.of(named) + QUERIES.get(address.path, "")
        answer = page.ask(path, cookie=cookie)
        if answer.status != 303:
            _check(path, answer.headers["content-type"], answer.text)
    for path in (
        f"/vm/{quote(HOSTILE + '2', safe='')}",
        f"/?{quote(HOSTILE)}=1",
        f"/history?days={quote(OTHER)}",
    ):
        answer = page.ask(path, cookie=cookie)
        assert answer.status >= 400
        _check(path, answer.headers["content-type"], answer.text)


def test_what_forms_say_back_is_text(page: Page) -> None:
    cookie = page.session()
    csrf = {"csrf": page.csrf(cookie)}
    group_form = {"name": OTHER, "priority": "1", "vms_rule": "negative", "hosts_rule": "disabled"}
    for path, form in (
        ("/group/g1/edit", {**group_form, "vms": f"{HOSTILE}\n{OTHER}"}),
        ("/group/g1/edit", {**group_form, "vms": OTHER + HOSTILE}),
        ("/group/g1/edit", {**group_form, "priority": HOSTILE}),
        ("/group/g1/edit", {"gone": "yes"}),
        ("/cluster/c1/new-group", {**group_form, "vms": "a\nb"}),
        ("/plan/c1/refuse", {"plan": HOSTILE, "reason": OTHER}),
        ("/plan/c1/approve", {"plan": OTHER}),
        ("/cluster/c1/pause", {"hours": HOSTILE}),
        ("/keys/set", {"level": "server", "on": HOSTILE, "name": OTHER[:20], "value": "2", "weight": "3"}),
        ("/keys/set", {"level": "server", "on": OTHER[:30], "name": HOSTILE[:50], "value": OTHER[:50]}),
        ("/keys/set", {"level": "server", "on": "a", "name": OTHER[:20], "gone": "yes"}),
        ("/keys/hosts", {"cluster": "c1", "name": OTHER[:20], "values": f"h1={HOSTILE}\n{OTHER}=1"}),
        ("/maintenance/c1/begin", {"hosts": "h1", "work": "nothing", "return": "none", "stop": OTHER}),
        ("/maintenance/c1/pause", {"run": OTHER}),
        ("/log-in", {"name": HOSTILE, "password": "wrong"}),
        ("/log-in", {"name": OTHER, "password": ""}),
    ):
        answer = page.ask(path, cookie=cookie if path != "/log-in" else None, form={**csrf, **form})
        assert answer.status != 403
        _check(path, answer.headers["content-type"], answer.text)


class _Seen(HTMLParser):
    """What a browser would make of a page, as the standard library reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[object] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("img", "b", "iframe", "object", "embed", "style", "base"):
            self.foreign.append((tag, attributes))
        source = dict(attributes).get("src") or ""
        if tag == "script" and not (source.startswith("/ovirt-placement/static/") and len(attributes) <= 3):
            self.foreign.append((tag, attributes))
        for name, value in attributes:
            if name.startswith("on") or name == "style" or (value or "").strip().startswith("javascript:"):
                self.foreign.append((tag, name, value))

    def handle_data(self, data: str) -> None:
        if "alert(1)>49" in data or "\u202e" in data or "\u2066" in data:
            self.foreign.append(data)


def _check(path: str, kind: str, text: str) -> None:
    if kind.startswith("application/json"):
        json.loads(text)
        return
    assert kind.startswith(("text/html", "text/plain")), (path, kind)
    if kind.startswith("text/html"):
        seen = _Seen()
        seen.feed(text)
        seen.close()
        assert seen.foreign == [], path
