"""Rules and groups are changed on the page: foreseen as the command foresees them, then for good."""

import html
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import PlacementRule
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_simulator.core.entities import BY_NAME, user_id
from ovirt_simulator.http.control import Disturbance
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.portal import Portal
from tests.web.running import HOSTILE, Page, check_preview, fields, paged, words

pytestmark = pytest.mark.system

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
)
PAIR = group("g2", TOGETHER, "a b", cluster="c1", name="pair")
ADDRESS = "/cluster/c1/rule"


def standing(page: Page) -> tuple[PlacementRule, ...]:
    with page.store(RuleStore) as store:
        return tuple(one.rule for one in store.all_rules())


def test_a_rule_is_foreseen_written_changed_and_removed(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    cookie = page.session()
    form = fields(page, cookie, ADDRESS) | {"name": "apart", "kind": "at_most_per_host", "vms": "db-1\ndb-2"}
    form["most"] = "1"
    looked = page.ask(ADDRESS, cookie=cookie, form=form)
    assert looked.status == 200
    assert standing(page) == ()  # nothing is changed by looking
    options = ["--kind", "at_most_per_host", "--cluster", "c1", "--vms", "db-1", "db-2", "--most", "1"]
    config = ["--config", str(page.folder / "placement.toml")]
    placement(["rules", "add", "apart", *options, "--what-if", "--json", *config])
    document = json.loads(capsys.readouterr().out)
    assert document["clusters"][0]["violated"]
    check_preview(words(looked.text), document)

    answer = page.ask(ADDRESS, cookie=cookie, form={**form, "do": "yes"})
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/cluster/c1/rules")
    (rule,) = standing(page)
    assert (rule.name, rule.kind, rule.vms, rule.most) == ("apart", "at_most_per_host", ("db-1", "db-2"), 1)
    assert (rule.enforcing, rule.continuous, rule.enabled) == (True, True, True)
    line = json.loads(page.audit().splitlines()[-1])
    assert (line["act"], line["outcome"]) == ("rule add", "done")

    # It is new no more: what was looked at before that is refused.
    stale = page.ask(ADDRESS, cookie=cookie, form={**form, "do": "yes"})
    assert stale.status == 409
    assert "the rule has changed since you looked at it" in stale.text

    form = fields(page, cookie, f"{ADDRESS}?rule=apart")
    assert (form["vms"], form["most"], form["kind"]) == ("db-1\ndb-2", "1", "at_most_per_host")
    form["most"] = "2"
    del form["enforcing"]
    assert page.ask(ADDRESS, cookie=cookie, form={**form, "do": "yes"}).status == 303
    (rule,) = standing(page)
    assert (rule.most, rule.enforcing) == (2, False)

    form = fields(page, cookie, f"{ADDRESS}?rule=apart") | {"gone": "yes"}
    assert "Remove rule" in page.ask(ADDRESS, cookie=cookie, form=form).text
    assert page.ask(ADDRESS, cookie=cookie, form={**form, "do": "yes"}).status == 303
    assert standing(page) == ()


def test_a_rule_is_changed_by_who_may_change_those_of_its_own_cluster(page: Page) -> None:
    cookie, elsewhere = page.session(), "/cluster/c2/rule"
    rule = PlacementRule("apart", "at_most_per_host", "c1", ("db-1", "db-2"), most=1)
    with page.store(RuleStore) as store:
        store.change(lambda _: RuleChange(put=(rule,)), changed_by="root")
        form = fields(page, cookie, f"{ADDRESS}?rule=apart")
        assert page.ask(f"{elsewhere}?rule=apart", cookie=cookie).status == 404
        for more in ({"gone": "yes"}, {"most": "2"}):
            answer = page.ask(elsewhere, cookie=cookie, form={**form, **more, "do": "yes"})
            assert answer.status == 404
            assert "Cluster c2 has no placement rule apart" in answer.text
            assert json.loads(page.audit().splitlines()[-1])["outcome"].startswith("refused")
        assert standing(page) == (rule,)
        store.change(lambda _: RuleChange(remove=("apart",)), changed_by="root")


RULE = {"name": "apart", "kind": "at_most_per_host", "vms": "db-1", "most": "1"}


@pytest.mark.parametrize(
    ("address", "form", "said"),
    [
        (ADDRESS, {**RULE, "most": "few"}, "Limits are whole numbers"),
        (ADDRESS, {**RULE, "most": ""}, "needs most"),
        (ADDRESS, {**RULE, "domains": "rack-a"}, "NAME=HOST,HOST"),
        (ADDRESS, {**RULE, "kind": "none"}, "there is no kind none"),
        ("/group/g1/edit", {"vms": "nothing"}, "VMs: There is no VM"),
        ("/group/g1/edit", {"priority": "nan"}, "A priority is a number"),
        ("/group/g1/edit", {"vms_rule": "both"}, "A rule is disabled, positive or negative"),
    ],
)
def test_what_means_nothing_is_refused(page: Page, address: str, form: dict[str, str], said: str) -> None:
    cookie = page.session()
    answer = page.ask(address, cookie=cookie, form=fields(page, cookie, address) | form)
    assert answer.status == 400
    assert said in html.unescape(answer.text)


def test_what_names_nobody_is_said_and_cannot_be_saved(page: Page) -> None:
    cookie, reader = page.session(), page.session("reader@internal")
    form = {"name": "none", "kind": "at_most_per_host", "vms": "nobody", "most": "1"}
    form = fields(page, cookie, ADDRESS) | form
    looked = page.ask(ADDRESS, cookie=cookie, form=form)
    assert "It cannot be saved" in looked.text
    assert 'name="do"' not in looked.text
    assert page.ask(ADDRESS, cookie=cookie, form={**form, "do": "yes"}).status == 409
    own = {**form, "vms": "db-1", "csrf": page.csrf(reader), "do": "yes"}
    assert page.ask(ADDRESS, cookie=reader, form=own).status == 403
    assert standing(page) == ()


# -- Affinity groups are changed on the page: foreseen first, then by the engine in the person's name.
@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    state = replace(STATE, affinity_groups=(*STATE.affinity_groups, PAIR))
    with paged(tmp_path_factory.mktemp("page"), state) as found:
        yield found


def members(own: Page, name: str) -> set[str]:
    (found,) = (one for one in own.engine.queries.state.groups_of("c1") if one.name == name)
    return set(found.vms)


def test_a_change_is_foreseen_as_the_command_foresees_it_and_then_made_by_the_engine(
    own: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    cookie = own.session()
    form = fields(own, cookie, "/group/g1/edit")
    hostile = HOSTILE.replace("\u202e", "\\u202e")  # by its code, and found again by that
    assert form["vms"] == f"db-1\n{hostile}"
    assert (form["vms_rule"], form["hosts_rule"], "vms_enforcing" in form) == ("negative", "disabled", True)
    # Nothing is changed by looking.
    form["vms"] = "db-2\n" + hostile
    form["name"] = "data"
    looked = own.ask("/group/g1/edit", cookie=cookie, form=form)
    assert looked.status == 200
    assert members(own, "databases") == {"a", "x"}
    changes = ["--name", "data", "--remove-vm", "db-1", "--add-vm", "db-2", "--what-if", "--json"]
    placement(["groups", "edit", "databases", *changes, "--config", str(own.folder / "placement.toml")])
    check_preview(words(looked.text), json.loads(capsys.readouterr().out))
    assert "<img" not in looked.text
    answer = own.ask("/group/g1/edit", cookie=cookie, form={**form, "do": "yes"})
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/group/g1")
    assert members(own, "data") == {"b", "x"}
    with own.store(UserActionStore) as store:
        (action,) = store.actions(since_seconds=600)
    assert (action.kind, action.login, action.state) == ("group_edit", "admin@internal-authz", "done")
    assert "name data" in action.details
    line = json.loads(own.audit().splitlines()[-1])
    assert (line["act"], line["outcome"]) == ("group edit", "done")
    assert "databases" in line["on"]
    # What was looked at before that is refused.
    stale = own.ask("/group/g1/edit", cookie=cookie, form={**form, "do": "yes"})
    assert stale.status == 409
    assert "this group has changed since you looked at it" in stale.text


def test_of_two_who_save_one_group_at_once_the_second_is_refused(own: Page) -> None:
    cookies = own.session(), own.session()
    forms = [fields(own, one, "/group/g1/edit") | {"do": "yes", "vms": "db-2"} for one in cookies]
    forms[1]["vms"] = "db-1"
    own.server.disturbances.add(Disturbance(method="PUT", path="affinitygroups", delay_seconds=1.0))
    with ThreadPoolExecutor() as at_once:
        saved = at_once.map(
            lambda who, form: own.ask(form=form, cookie=who, path="/group/g1/edit"), cookies, forms
        )
        assert sorted(one.status for one in saved) == [303, 409]


def test_what_clashes_is_named_and_cannot_be_done(own: Page) -> None:
    cookie = own.session()
    form = fields(own, cookie, "/cluster/c1/new-group") | {"name": "clash", "vms": "db-1\ndb-2"}
    form |= {"vms_rule": "negative", "vms_enforcing": "on"}
    looked = own.ask("/cluster/c1/new-group", cookie=cookie, form=form)
    assert "The engine would refuse it: " in looked.text
    assert "pair" in looked.text.partition('id="foreseen"')[2]
    assert 'name="do"' not in looked.text
    # By hand it is the engine's to refuse.
    answer = own.ask("/cluster/c1/new-group", cookie=cookie, form={**form, "do": "yes"})
    assert answer.status == 409
    assert "The engine refuses it" in answer.text
    assert {one.name for one in own.engine.queries.state.groups_of("c1")} == {"databases", "pair"}


def test_groups_are_added_and_removed_by_who_may(own: Page) -> None:
    cookie, reader = own.session(), own.session("reader@internal")
    assert "New affinity group" not in own.ask("/cluster/c1", cookie=reader).text
    assert "Remove" not in own.ask("/group/g1", cookie=reader).text
    form = fields(own, cookie, "/cluster/c1/new-group") | {"name": "more", "vms": "db-2"}
    assert own.ask("/cluster/c1/new-group", cookie=cookie, form=form | {"do": "yes"}).status == 303
    assert members(own, "more") == {"b"}
    granted = Portal(own.engine).grant(BY_NAME["ClusterAdmin"].id, user_id("reader@internal"), cluster="c2")
    mine = {**form, "name": "mine", "csrf": own.csrf(reader), "do": "yes"}
    assert own.ask("/cluster/c1/new-group", cookie=reader, form=mine).status == 403
    Portal(own.engine).revoke(granted.id)
    gone = {"csrf": own.csrf(cookie), "gone": "yes", "was": fields(own, cookie, "/group/g2/edit")["was"]}
    looked = own.ask("/group/g2/edit", cookie=cookie, form=gone)
    assert "Rules it violates 0" in words(looked.text)
    assert own.ask("/group/g2/edit", cookie=cookie, form=gone | {"do": "yes"}).status == 303
    assert "pair" not in {one.name for one in own.engine.queries.state.groups_of("c1")}


def test_of_a_change_whose_answer_is_lost_it_is_not_said_that_nothing_was_changed(own: Page) -> None:
    cookie = own.session()
    form = {**fields(own, cookie, "/group/g1/edit"), "vms": "db-2", "do": "yes"}
    own.server.disturbances.add(Disturbance(method="PUT", path="affinitygroups", drop="answer"))
    answer = own.ask("/group/g1/edit", cookie=cookie, form=form)
    assert answer.status == 503
    assert "It is not known whether that was done: " in answer.text
    assert members(own, "databases") == {"b"}
