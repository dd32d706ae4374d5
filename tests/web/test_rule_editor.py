"""Placement rules are written on the page: foreseen as the command foresees them, then in the store."""

import html
import json

import pytest

from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import PlacementRule
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import cluster, host, snapshot, vm
from tests.web.running import Page, check_preview, fields, words

pytestmark = pytest.mark.system

STATE = snapshot(
    cluster("c1"),
    cluster("c2"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    vm("a", "h1", cluster="c1", name="db-1"),
    vm("b", "h1", cluster="c1", name="db-2"),
)
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


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("most", "few", "Limits are whole numbers"),
        ("most", "", "most"),
        ("domains", "rack-a", "NAME=HOST,HOST"),
        ("kind", "none", "kind"),
    ],
)
def test_what_means_nothing_is_refused(page: Page, field: str, value: str, said: str) -> None:
    cookie = page.session()
    form = {"name": "apart", "kind": "at_most_per_host", "vms": "db-1", "most": "1"} | {field: value}
    answer = page.ask(ADDRESS, cookie=cookie, form=fields(page, cookie, ADDRESS) | form)
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
