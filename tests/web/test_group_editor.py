"""Affinity groups are changed on the page: foreseen first, then by the engine in the person's name."""

import html
import json
from collections.abc import Iterator

import pytest

from ovirt_placement.cli.main import main as placement
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_simulator.core.entities import BY_NAME, user_id
from ovirt_simulator.http.control import Disturbance
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.portal import Portal
from tests.web.running import HOSTILE, Page, check_preview, fields, paged, words

STATE = snapshot(
    cluster("c1"),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    host("h3", cluster="c2"),
    vm("a", "h1", cluster="c1", name="db-1"),
    vm("b", "h1", cluster="c1", name="db-2"),
    vm("x", "h2", cluster="c1", name=HOSTILE),
    group("g1", APART, "a x", cluster="c1", name="databases"),
    group("g2", TOGETHER, "a b", cluster="c1", name="pair"),
)


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with paged(tmp_path_factory.mktemp("page"), STATE) as found:
        yield found


def members(page: Page, name: str) -> set[str]:
    (found,) = (one for one in page.engine.queries.state.groups_of("c1") if one.name == name)
    return set(found.vms)


@pytest.mark.system
def test_a_change_is_foreseen_as_the_command_foresees_it_and_then_made_by_the_engine(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    cookie = page.session()
    form = fields(page, cookie, "/group/g1/edit")
    hostile = HOSTILE.replace("\u202e", "\\u202e")  # by its code, and found again by that
    assert form["vms"] == f"db-1\n{hostile}"
    assert (form["vms_rule"], form["hosts_rule"], "vms_enforcing" in form) == ("negative", "disabled", True)
    # Nothing is changed by looking.
    form["vms"] = "db-2\n" + hostile
    form["name"] = "data"
    looked = page.ask("/group/g1/edit", cookie=cookie, form=form)
    assert looked.status == 200
    assert members(page, "databases") == {"a", "x"}
    changes = ["--name", "data", "--remove-vm", "db-1", "--add-vm", "db-2", "--what-if", "--json"]
    placement(["groups", "edit", "databases", *changes, "--config", str(page.folder / "placement.toml")])
    check_preview(words(looked.text), json.loads(capsys.readouterr().out))
    assert "<img" not in looked.text
    answer = page.ask("/group/g1/edit", cookie=cookie, form={**form, "do": "yes"})
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/group/g1")
    assert members(page, "data") == {"b", "x"}
    with page.store(UserActionStore) as store:
        (action,) = store.actions(since_seconds=600)
    assert (action.kind, action.login, action.state) == ("group_edit", "admin@internal-authz", "done")
    assert "name data" in action.details
    line = json.loads(page.audit().splitlines()[-1])
    assert (line["act"], line["outcome"]) == ("group edit", "done")
    assert "databases" in line["on"]
    # What was looked at before that is refused.
    stale = page.ask("/group/g1/edit", cookie=cookie, form={**form, "do": "yes"})
    assert stale.status == 409
    assert "this group has changed since you looked at it" in stale.text


@pytest.mark.system
def test_what_clashes_is_named_and_cannot_be_done(page: Page) -> None:
    cookie = page.session()
    form = fields(page, cookie, "/cluster/c1/new-group") | {"name": "clash", "vms": "db-1\ndb-2"}
    form |= {"vms_rule": "negative", "vms_enforcing": "on"}
    looked = page.ask("/cluster/c1/new-group", cookie=cookie, form=form)
    assert "The engine would refuse it: " in looked.text
    assert "pair" in looked.text.partition('id="foreseen"')[2]
    assert 'name="do"' not in looked.text
    # By hand it is the engine's to refuse.
    answer = page.ask("/cluster/c1/new-group", cookie=cookie, form={**form, "do": "yes"})
    assert answer.status == 409
    assert "The engine refuses it" in answer.text
    assert {one.name for one in page.engine.queries.state.groups_of("c1")} == {"databases", "pair"}


@pytest.mark.system
def test_groups_are_added_and_removed_by_who_may(page: Page) -> None:
    cookie, reader = page.session(), page.session("reader@internal")
    assert "New affinity group" not in page.ask("/cluster/c1", cookie=reader).text
    assert "Remove" not in page.ask("/group/g1", cookie=reader).text
    form = fields(page, cookie, "/cluster/c1/new-group") | {"name": "more", "vms": "db-2"}
    assert page.ask("/cluster/c1/new-group", cookie=cookie, form=form | {"do": "yes"}).status == 303
    assert members(page, "more") == {"b"}
    granted = Portal(page.engine).grant(BY_NAME["ClusterAdmin"].id, user_id("reader@internal"), cluster="c2")
    own = {**form, "name": "mine", "csrf": page.csrf(reader), "do": "yes"}
    assert page.ask("/cluster/c1/new-group", cookie=reader, form=own).status == 403
    Portal(page.engine).revoke(granted.id)
    gone = {"csrf": page.csrf(cookie), "gone": "yes", "was": fields(page, cookie, "/group/g2/edit")["was"]}
    looked = page.ask("/group/g2/edit", cookie=cookie, form=gone)
    assert "Rules it violates 0" in words(looked.text)
    assert page.ask("/group/g2/edit", cookie=cookie, form=gone | {"do": "yes"}).status == 303
    assert "pair" not in {one.name for one in page.engine.queries.state.groups_of("c1")}


@pytest.mark.system
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("vms", "nothing", "VMs: there is no VM"),
        ("priority", "nan", "A priority is a number"),
        ("vms_rule", "both", "A rule is disabled, positive or negative"),
    ],
)
def test_what_means_nothing_is_refused(page: Page, field: str, value: str, said: str) -> None:
    cookie = page.session()
    form = fields(page, cookie, "/group/g1/edit") | {field: value}
    answer = page.ask("/group/g1/edit", cookie=cookie, form=form)
    assert answer.status == 400
    assert said in html.unescape(answer.text)


@pytest.mark.system
def test_of_a_change_whose_answer_is_lost_it_is_not_said_that_nothing_was_changed(page: Page) -> None:
    cookie = page.session()
    form = {**fields(page, cookie, "/group/g1/edit"), "vms": "db-2", "do": "yes"}
    page.server.disturbances.add(Disturbance(method="PUT", path="affinitygroups", drop="answer"))
    answer = page.ask("/group/g1/edit", cookie=cookie, form=form)
    assert answer.status == 503
    assert "It is not known whether that was done: " in answer.text
    assert members(page, "databases") == {"b"}
