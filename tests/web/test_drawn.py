"""What the map draws and what the view of failures foresees, held against the state and against commands."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given

from ovirt_placement.answers.violations import violations
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import Snapshot
from ovirt_placement_web.state.map import cluster_map
from tests import builders
from tests.placement.rules.strategies import snapshots
from tests.web.running import Page


@given(snapshots())
def test_a_map_has_each_running_vm_in_its_place(state: Snapshot) -> None:
    for cluster in state.clusters:
        violated = violations(state, [cluster])
        drawn = cluster_map(state, cluster, violated, 1)
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
    cookie = page.session()
    drawn = json.loads(page.ask("/api/v1/clusters/c1/map", cookie=cookie).text)
    text = page.ask("/map/c1/table", cookie=cookie).text
    for one in (*drawn["hosts"], *drawn["vms"]):
        assert f'{one["id"]}"><bdi>{one["name"]}</bdi>' in text
    assert (
        len(re.findall("violates a (?:hard|soft) rule", text))
        == sum("wrong" in vm for vm in drawn["vms"])
        > 0
    )


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
