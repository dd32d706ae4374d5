"""Placement keys are set and removed on the page: foreseen as the command does, by who may."""

import html
import json
import re
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement import config
from ovirt_placement.answers.keys.change import to_set
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import DataCenter, Disk, SchedulingPolicy, Snapshot
from ovirt_placement.store.keys import KeyChange, KeyStore
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_placement_web.views.keys import _Wanted
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import BY_NAME, user_id
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_configuration
from tests.portal import Portal
from tests.scenarios.stage import START
from tests.web.running import HOSTILE, Answer, Page, check_preview, words

HEEDING = SchedulingPolicy(filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 100})
STATE = replace(
    snapshot(
        cluster("c1", name="blue", scheduling_policy=HEEDING, data_center="dc"),
        cluster("c2", name="red", data_center="dc"),
        host("h1", cluster="c1", name="alpha"),
        host("h2", cluster="c1", name=HOSTILE),
        host("h3", cluster="c2", name="gamma"),
        vm("a", "h1", cluster="c1", name="db-1", template="t1"),
        vm("x", "h2", cluster="c1", name=HOSTILE, template="t1"),
        vm("r", "h3", cluster="c2", name="mail"),
    ),
    data_centers=(DataCenter(id="dc", name="home"),),
)


def key(level: str, on: str, name: str, value: str = "", weight: str = "", **more: str) -> dict[str, str]:
    return {"level": level, "on": on, "as": "operator", "name": name, "value": value, "weight": weight} | more


def looked(page: Page, cookie: str, path: str, form: dict[str, str]) -> tuple[Answer, dict[str, str]]:
    """What would come of it, and the form with which it is done."""
    answer = page.ask(path, cookie=cookie, form={**form, "csrf": page.csrf(cookie)})
    was = re.search(r'name="was" value="([^"]*)"', answer.text)
    return answer, form | {"csrf": page.csrf(cookie), "was": was[1] if was else "", "do": "yes"}


def do(page: Page, cookie: str, path: str, form: dict[str, str]) -> Answer:
    return page.ask(path, cookie=cookie, form=looked(page, cookie, path, form)[1])


def standing(page: Page, name: str) -> dict[tuple[str, str], tuple[float | str, float | None, str]]:
    with page.store(KeyStore) as store:
        keys = [one for one in store.all_keys() if one.key.name == name]
    return {(one.key.level, one.key.resource): (one.key.value, one.key.weight, one.set_by) for one in keys}


@pytest.mark.system
def test_a_key_is_foreseen_as_the_command_foresees_it_and_then_set(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    cookie = page.session()
    hosts = {"cluster": "c1", "name": "SSD", "values": "alpha=0\nh2=1", "sticky": ""}
    assert do(page, cookie, "/keys/hosts", hosts).status == 303
    form = key("server", "db-1", "SSD", "0", "-200")
    answer, done = looked(page, cookie, "/keys/set", form)
    given = ["keys", "set", "SSD", "0", "-200", "--on", "server", "db-1"]
    config = ["--config", str(page.folder / "placement.toml")]
    placement([*given, "--dry-run", *config])
    printed = capsys.readouterr().out.replace("Nothing was written: this was a dry run.", "")
    assert " ".join(printed.split()) in words(answer.text)
    placement([*given, "--what-if", "--json", *config])
    foreseen = json.loads(capsys.readouterr().out)
    assert foreseen["clusters"]
    check_preview(words(answer.text), foreseen)
    assert standing(page, "SSD").keys() == {("node", "h1"), ("node", "h2")}
    answer = page.ask("/keys/set", cookie=cookie, form=done)
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/vm/a/keys")
    assert standing(page, "SSD")["server", "a"] == (0, -200, "admin@internal-authz")
    with page.store(UserActionStore) as store:
        action = store.actions(since_seconds=600)[-1]
    assert (action.kind, action.login) == ("keys", "admin@internal-authz")
    assert action.details == ("set server db-1: system key SSD to 0 (weight -200)",)
    line = json.loads(page.audit().splitlines()[-1])
    assert (line["act"], line["outcome"]) == ("key set", "done")
    assert line["on"] == "operator's placement key SSD on server db-1"


@pytest.mark.system
def test_each_level_of_a_vm_shows_what_is_in_force_and_what_that_overrides(page: Page) -> None:
    cookie = page.session()
    for level, on, value in (("cluster", "blue", "1"), ("vdc", "home", "3"), ("server", HOSTILE, "2")):
        done = do(page, cookie, "/keys/set", key(level, on, "GEN", value, "50"))
        assert done.status == 303, done.text
    # A resource that the engine names by its id alone.
    assert do(page, cookie, "/keys/set", key("image", "t1", "GEN", "9", "1")).status == 303
    page.until(lambda: "GEN 9" in words(page.ask("/vm/x/keys", cookie=cookie).text))
    text = page.seen("/vm/x/keys")
    rows = [
        rf"Cluster blue system GEN 1 50 overridden by server {re.escape(shown(HOSTILE))}",
        r"Template \(image\) t1 system GEN 9 1 overridden by server",
        r"Data center \(vdc\) home system GEN 3 50 overridden by server",
        rf"VM \(server\) {re.escape(shown(HOSTILE))} system GEN 2 50 in force",
    ]
    at = [re.search(row, text) for row in rows]
    assert all(at), text
    starts = [found.start() for found in at if found]
    assert starts == sorted(starts)
    other = page.seen("/vm/a/keys")
    assert re.search(r"Data center \(vdc\) home system GEN 3 50 in force", other)
    assert re.search(r"Cluster blue system GEN 1 50 overridden by vdc home", other)


@pytest.mark.system
def test_the_second_of_two_administrators_learns_what_has_changed(page: Page) -> None:
    ann, bob = page.session(), page.session()
    assert do(page, ann, "/keys/set", key("cluster", "red", "RACK", "1", "10")).status == 303
    _, mine = looked(page, ann, "/keys/set", key("cluster", "red", "RACK", "2", "10"))
    _, gone = looked(page, ann, "/keys/set", key("cluster", "red", "RACK", gone="yes"))
    assert do(page, bob, "/keys/set", key("cluster", "red", "RACK", "3", "10")).status == 303
    for form in (mine, gone):
        answer = page.ask("/keys/set", cookie=ann, form=form)
        assert answer.status == 409
        assert "it has changed since you looked at it" in answer.text
        assert "cluster red: system key RACK is 3 (weight 10), set by admin@internal-authz at" in answer.text
    assert standing(page, "RACK") == {("cluster", "c2"): (3, 10, "admin@internal-authz")}
    assert json.loads(page.audit().splitlines()[-1])["outcome"].startswith("refused: it has changed")
    looks, _ = looked(page, ann, "/keys/set", key("cluster", "red", "RACK", gone="yes"))
    assert "unset cluster red: system key RACK" in words(looks.text)
    assert do(page, ann, "/keys/set", key("cluster", "red", "RACK", gone="yes")).status == 303
    assert standing(page, "RACK") == {}
    answer = page.ask("/keys/set", cookie=ann, form=gone)
    assert answer.status == 409
    assert 'no system key "RACK" is set there' in html.unescape(answer.text)


@pytest.mark.system
def test_a_key_of_hosts_is_on_all_hosts_of_a_cluster_or_on_none(page: Page) -> None:
    cookie = page.session()
    text = page.ask("/keys/hosts?cluster=c1&name=GREEN", cookie=cookie).text
    # The name of the other one cannot be sent back by a form.
    assert lines(text) == {"alpha=", "h2="}
    form = {"cluster": "c1", "name": "GREEN", "values": "alpha=1\nh2=2", "sticky": "60"}
    assert do(page, cookie, "/keys/hosts", form).status == 303
    assert standing(page, "GREEN").keys() == {("node", "h1"), ("node", "h2")}
    filled = page.ask("/keys/hosts?cluster=c1&name=GREEN", cookie=cookie).text
    assert lines(filled) == {"alpha=1", "h2=2"}
    answer, done = looked(page, cookie, "/keys/set", key("node", "alpha", "GREEN", gone="yes"))
    assert "node-key-set-differs" in answer.text
    assert 'name="do"' not in answer.text
    assert page.ask("/keys/set", cookie=cookie, form=done).status == 409
    # One host's value is its own to change; weight and flag are those of the others.
    assert do(page, cookie, "/keys/set", key("node", "alpha", "GREEN", "5")).status == 303
    assert standing(page, "GREEN")["node", "h1"][:2] == (5, 60)
    assert "GREEN" in page.seen("/keys")
    gone = {"cluster": "c1", "name": "GREEN", "gone": "yes"}
    assert do(page, cookie, "/keys/hosts", gone).status == 303
    assert standing(page, "GREEN") == {}


@pytest.mark.system
def test_keys_are_set_by_who_may_change_every_cluster_concerned(page: Page) -> None:
    admin, reader = page.session(), page.session("reader@internal")
    assert "Set a key" not in page.ask("/keys", cookie=reader).text
    assert "Set a key" in page.ask("/keys", cookie=admin).text
    granted = Portal(page.engine).grant(BY_NAME["ClusterAdmin"].id, user_id("reader@internal"), cluster="c2")
    for level, on, status in (
        ("server", "mail", 303),
        ("node", "gamma", 303),
        ("server", "db-1", 403),
        ("cluster", "blue", 403),
        ("vdc", "home", 403),
        ("image", "t1", 403),
    ):
        weight = "" if level == "node" else "1"
        answer = do(page, reader, "/keys/set", key(level, on, "MINE", "1", weight))
        assert answer.status == status, (level, answer.text)
    Portal(page.engine).revoke(granted.id)
    answer = do(page, reader, "/keys/set", key("server", "mail", "MINE", gone="yes"))
    assert answer.status == 403
    assert ("server", "r") in standing(page, "MINE")
    line = json.loads(page.audit().splitlines()[-1])
    assert (line["who"], line["act"]) == ("reader@internal-authz", "key unset")
    assert line["outcome"].startswith("refused: You have no permit edit_cluster_configuration")


@pytest.mark.parametrize(
    ("form", "status", "said"),
    [
        (key("cluster", "blue", "BAD", "1", "0"), 200, "weight-zero"),
        (key("server", "nobody", "BAD", "1", "3"), 400, 'No VM "nobody"'),
        (key("cluster", "blue", "BAD", "1", "much"), 400, 'The weight "much" is no number'),
        (key("planet", "earth", "BAD", "1", "3"), 400, "There is no such level"),
    ],
)
def test_what_may_not_be_set_is_refused_as_by_the_command(
    page: Page, form: dict[str, str], status: int, said: str
) -> None:
    cookie = page.session()
    answer, done = looked(page, cookie, "/keys/set", form)
    assert answer.status == status
    assert said in html.unescape(answer.text)
    assert 'name="do"' not in answer.text
    assert page.ask("/keys/set", cookie=cookie, form=done).status in {400, 409}
    assert standing(page, "BAD") == {}


def test_what_keys_refer_to_is_read_and_nothing_that_was_measured_is_lost(tmp_path: Path) -> None:
    """A key on a disk's profile: the published state knows the load of hosts, and no disks."""
    measured = snapshot(cluster("c1"), host("h1", cluster="c1", cpu_percent=70.0), vm("a", cluster="c1"))
    disk = Disk(id="d", bootable=True, profile="gold")
    real = replace(measured, vms=tuple(replace(one, disks=(disk,)) for one in measured.vms))
    foreseen: list[Snapshot] = []
    with closing(serve(Engine.from_snapshot(real, clock=START))) as server:
        loaded = config.load(write_configuration(tmp_path, server.api_url))
        made = SimpleNamespace(foreseen=lambda before, change: foreseen.append(before))
        asked: Any = SimpleNamespace(site=SimpleNamespace(config=loaded, made=made), snapshot=measured)

        def decide(state: Snapshot) -> KeyChange:
            return to_set(state, "FAST", "1", "5", ("disk_offer", "gold"), "operator")

        _Wanted(asked, "disk_offer", ("gold",), (), decide).foresee()
    (found,) = foreseen
    assert found.hosts[0].cpu_percent == 70.0
    assert found.vms[0].disks[0].profile == "gold"


def lines(text: str) -> set[str]:
    """What stands in the field of values."""
    return set(re.findall(r'<textarea id="values"[^>]*>([^<]*)', text)[0].split())


def shown(name: str) -> str:
    return name.replace("\u202e", "\\u202e")
