"""The map, what has changed of it, and what failures are foreseen to do: against state and commands."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.status.health import HealthState, StateSource
from ovirt_placement.answers.violations import violations
from ovirt_placement.cli.main import main as placement
from ovirt_placement.config import load
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement_web.state.map import MapDocument, MapGroup, MapHost, MapVm, cluster_map, map_changes
from ovirt_placement_web.state.questions import Memory, Questions
from ovirt_placement_web.state.sources import Past, View
from tests import builders
from tests.examples import examples
from tests.placement.rules.strategies import snapshots
from tests.web.running import Page

_NAMES = st.sampled_from("abcd")
_PLACE = st.none() | st.integers(0, 2)


@st.composite
def _maps(draw: st.DrawFn, number: int, hosts: str = "xyz") -> MapDocument:
    """VMs come, go, are renamed, move, join and leave groups; a host may be lacking."""
    vms = draw(
        st.dictionaries(
            st.sampled_from("123456"),
            st.tuples(_NAMES, _PLACE, _PLACE, st.sets(st.integers(0, 1)), st.sampled_from(["", "hard"])),
        )
    )
    drawn = [
        MapVm(key, name, "up", host, to, tuple(groups), wrong)
        for key, (name, host, to, groups, wrong) in vms.items()
    ]
    return MapDocument(
        cluster=Named("c1", "blue"),
        number=number,
        hosts=tuple(MapHost(name, name, "up", 1024, draw(st.sampled_from([1, 2]))) for name in hosts),
        groups=tuple(MapGroup(name, name, draw(st.booleans())) for name in "pq"),
        vms=tuple(sorted(drawn, key=lambda vm: (vm.name, vm.id))),
    )


def _applied(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """As a reader of the document's description would."""
    if changes["whole"] is not None:
        whole: dict[str, Any] = changes["whole"]
        return whole
    now = {**before, "number": changes["number"]}
    for kind, name in (("hosts", "host"), ("groups", "group")):
        now[kind] = list(before[kind])
        for one in changes[kind]:
            now[kind][one["at"]] = one[name]
    now["vms"] = [vm for at, vm in enumerate(before["vms"]) if at not in changes["gone"]]
    for one in changes["came"]:
        now["vms"].insert(one["at"], one["vm"])
    for one in changes["changed"]:
        now["vms"][one["at"]] = one["vm"]
    return now


def _plain(document: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(document))
    return plain


@given(_maps(1), _maps(2) | _maps(2, "xy"))
def test_changes_make_the_newer_map_of_the_older(before: MapDocument, after: MapDocument) -> None:
    changes = map_changes(before, after)
    assert _applied(_plain(before), _plain(changes)) == _plain(after)
    assert (changes.whole is not None) == (len(after.hosts) < len(before.hosts))


@st.composite
def _successors(draw: st.DrawFn) -> tuple[MapDocument, MapDocument]:
    """A map and its successor as a reading makes it: what has not changed are the same objects.

    As many VMs, mostly: of them some are drawn otherwise, or others stand in their places.
    """
    before = draw(_maps(1))
    after = []
    for vm in before.vms:
        what = draw(st.sampled_from(["same", "moved", "renamed", "another", "another of its name"]))
        if what == "moved":
            vm = msgspec.structs.replace(vm, host=draw(_PLACE), wrong=draw(st.sampled_from(["", "hard"])))
        elif what == "renamed":
            vm = msgspec.structs.replace(vm, name=draw(_NAMES))
        elif what != "same":
            name = vm.name if what == "another of its name" else draw(_NAMES)
            vm = msgspec.structs.replace(vm, id=f"{vm.id}{draw(st.sampled_from('0x'))}", name=name)
        after.append(vm)
    if draw(st.integers(0, 4)) == 0:
        after = after[1:]
    vms = tuple(sorted(after, key=lambda vm: (vm.name, vm.id)))
    return before, msgspec.structs.replace(before, number=2, vms=vms)


@settings(max_examples=examples(300))
@given(_successors())
def test_changes_say_who_came_went_and_changed_where_all_others_are_the_same_objects(
    maps: tuple[MapDocument, MapDocument],
) -> None:
    before, after = maps
    changes = map_changes(before, after)
    assert _applied(_plain(before), _plain(changes)) == _plain(after)
    old = {(vm.name, vm.id): vm for vm in before.vms}
    new = {(vm.name, vm.id): vm for vm in after.vms}
    assert [before.vms[at].id for at in changes.gone] == [vm.id for key, vm in old.items() if key not in new]
    assert [one.vm for one in changes.came] == [vm for key, vm in new.items() if key not in old]
    assert [one.vm for one in changes.changed] == [vm for key, vm in new.items() if old.get(key, vm) != vm]


def test_the_latest_maps_of_each_cluster_are_remembered() -> None:
    config, memory = load(None, {"OVIRT_URL": "http://127.0.0.1:9/ovirt-engine/api"}), Memory()
    state = builders.snapshot(builders.cluster("c1"), builders.cluster("c2"), builders.host("h1"))
    parts = HealthState(snapshot=state, source=StateSource(kind="inventory", where="here"))

    def asked(number: int) -> Questions:
        return Questions(config, Past(config), memory, View(number, parts, 0.0, None))

    for number in range(9):
        for one in state.clusters:
            asked(number).map(one)
    known = [asked(8).map_changes(state.clusters[0], since).whole is None for since in range(9)]
    assert known == [False] * 5 + [True] * 4


def test_a_migration_is_all_that_is_sent(page: Page) -> None:
    cookie = page.session()

    def asked(path: str) -> Any:
        return json.loads(page.ask(f"/api/v1/clusters/c1/map{path}", cookie=cookie).text)

    before = asked("")
    page.engine.vms.migrate("b", host_id="h2")
    page.engine.advance(1)
    page.until(lambda: bool(asked("")["number"] > before["number"]))
    changes = asked(f"/changes?since={before['number']}")
    assert changes["whole"] is None
    assert [one["vm"]["id"] for one in changes["changed"]] == ["b"]
    assert _applied(before, changes)["vms"] == asked("")["vms"]


@pytest.mark.parametrize("since", ["", "x", "-1", "1.5", "1" * 17])
def test_a_map_has_a_number(page: Page, since: str) -> None:
    answer = page.ask(f"/api/v1/clusters/c1/map/changes?since={since}", cookie=page.session())
    assert answer.status == 400
    assert "?since=NUMBER" in answer.text


def test_of_a_map_that_nobody_remembers_all_is_sent(page: Page) -> None:
    changes = json.loads(page.ask("/api/v1/clusters/c1/map/changes?since=1", cookie=page.session()).text)
    assert [host["name"] for host in changes["whole"]["hosts"]] == ["alpha", "beta"]


@given(snapshots())
def test_a_map_has_each_running_vm_in_its_place(state: Snapshot) -> None:
    for cluster in state.clusters:
        violated = violations(state, [cluster])
        drawn = cluster_map(state, cluster, violated, 1, {})
        hosts = [host.id for host in drawn.hosts]
        assert sorted(hosts) == sorted(host.id for host in state.hosts if host.cluster == cluster.id)
        places = {vm.id: hosts[vm.host] for vm in drawn.vms if vm.host is not None}
        assert places == {vm.id: vm.host for vm in state.vms if vm.host in hosts}
        wrong = {vm.id for one in violated.violations for vm in one.offenders}
        assert {vm.id for vm in drawn.vms if vm.wrong} == wrong & {vm.id for vm in drawn.vms}
        for vm in drawn.vms:
            groups = state.groups_of_vm.get(vm.id, ())
            own = {group.id for group in groups if group.cluster == cluster.id}
            assert {drawn.groups[at].id for at in vm.groups} == own


def test_hosts_of_a_failure_domain_are_drawn_next_to_each_other() -> None:
    hosts = (builders.host(name, cluster="c1") for name in ("h1", "h2", "h3", "h4"))
    state = builders.snapshot(builders.cluster("c1"), *hosts)
    domains = {"h1": "rack-b", "h2": "rack-a", "h3": "rack-b", "h4": "rack-a"}
    drawn = cluster_map(state, state.clusters[0], violations(state, state.clusters), 1, domains)
    assert [(one.name, one.domain) for one in drawn.hosts] == [
        ("h2", "rack-a"), ("h4", "rack-a"), ("h1", "rack-b"), ("h3", "rack-b")
    ]  # fmt: skip


def test_the_table_has_what_the_map_has(page: Page) -> None:
    """A VM that migrates stands in the rows of both hosts."""
    cookie = page.session()
    drawn = json.loads(page.ask("/api/v1/clusters/c1/map", cookie=cookie).text)
    text = page.ask("/map/c1/table", cookie=cookie).text
    for one in (*drawn["hosts"], *drawn["vms"]):
        assert f'{one["id"]}"><bdi>{one["name"]}</bdi>' in text
    places = sum(("host" in vm) + ("to" in vm) for vm in drawn["vms"] if "wrong" in vm)
    assert len(re.findall("violates a (?:hard|soft) rule", text)) == places > 0


@pytest.mark.parametrize("failing", [["alpha"], ["beta"], ["alpha", "beta"]])
def test_failing_hosts_come_to_what_the_command_foresees(
    page: Page, failing: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ids = {"alpha": "h1", "beta": "h2"}
    configured = ["--config", str(page.folder / "placement.toml")]
    placement(["ha-check", "--hosts", ",".join(failing), "--json", *configured])
    (foreseen,) = json.loads(capsys.readouterr().out)["clusters"]
    query = "&".join(f"host={ids[name]}" for name in failing)
    text = page.ask(f"/ha/c1?{query}", cookie=page.session()).text
    assert ("Survived: each highly available VM starts again" in text) == (foreseen["safe"] is True)
    assert ("Not survived" in text) == (foreseen["safe"] is False)
    for survived in foreseen["survivals"]:
        for home in survived["homes"]:
            assert f"{home['host']['name']}</bdi></a></td></tr>" in text
    for loss in foreseen["losses"]:
        for vm in loss["because"]:
            for refusal in vm["refused"]:
                assert refusal["because"][0] in text


def test_what_does_not_fail_is_not_shown(page: Page) -> None:
    cookie = page.session()
    assert page.ask("/ha/c1?host=h3", cookie=cookie).status == 404
    assert page.ask("/ha/c1?domain=rack", cookie=cookie).status == 404
    assert page.ask("/ha/nothing", cookie=cookie).status == 404
    assert page.ask("/map/c1/table?page=2", cookie=cookie).status == 400
    assert page.ask("/map/c1?page=2", cookie=cookie).status == 400
