"""What commands ask the engine for: no more than their answer hangs on, which decides how long they take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_enforcer.cli.plan import REPAIRS_ALL
from ovirt_placement.inventory.publication import Moments, now
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Application
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.kit.served import ServedInventory
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.portal import Portal

STATE = snapshot(
    replace(cluster("c1", name="blue"), ha_reservation=True),
    host("h1", name="north", cluster="c1"),
    host("h2", name="south", cluster="c1"),
    vm("v1", "h1", name="web", cluster="c1", ha=True),
    vm("v2", "h2", name="cache", cluster="c1"),
    vm("v3", name="db", cluster="c1"),
    group("g1", APART, "v1 v2", cluster="c1", name="apart"),
)


class Asked(list[str]):
    """What the engine was asked to show, by path and what was to be followed."""

    def of(self, start: str) -> list[str]:
        return [one for one in self if one.startswith(start)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found, answer = Asked(), Application._authenticated

    def noting(self: Application, request: Any, path: str) -> Any:
        if request.method == "GET":
            found.append(f"{path} {request.args.get('follow', '')}".strip())
        return answer(self, request, path)

    monkeypatch.setattr(Application, "_authenticated", noting)
    return found


@pytest.fixture
def live(serving: Starting, asked: Asked) -> Iterator[LiveEngine]:
    with serving(STATE) as running:
        yield running


@pytest.fixture
def followed(live: LiveEngine, tmp_path: Path) -> LiveEngine:
    """The same, with what an inventory has published of it."""
    text = live.config.read_text(encoding="utf-8")
    live.config.write_text(text.replace("[store]", "max_age_seconds = 3600\n[store]"), encoding="utf-8")
    at = now()
    ServedInventory(live.config).publish(STATE, Moments(at, store_asked_at=at, keys_at=at))
    return live


@pytest.mark.parametrize(
    ("arguments", "vms", "hosts"),
    [
        # A filter of the engine's asks how busy hosts are, and nothing of VMs.
        ("why web", ["/vms"], ["/hosts", "/hosts statistics"]),
        ("violations", ["/vms"], ["/hosts"]),
        ("groups list", ["/vms"], ["/hosts"]),
        # The check of reservations has all measured.
        ("ha-check", ["/vms", "/vms statistics"], ["/hosts", "/hosts statistics"]),
        ("status", ["/vms", "/vms statistics"], ["/hosts", "/hosts statistics"]),
    ],
)
def test_what_is_read_of_vms_and_hosts(
    live: LiveEngine, asked: Asked, arguments: str, vms: list[str], hosts: list[str]
) -> None:
    live.outcome(*arguments.split())
    assert (asked.of("/vms"), asked.of("/hosts")) == (vms, hosts)


@pytest.mark.parametrize(
    "arguments", ["keys set --on cluster blue GEN 1 1", "keys define GEN --cluster blue --default 1"]
)
def test_keys_that_hang_on_no_vm_read_none(live: LiveEngine, asked: Asked, arguments: str) -> None:
    live.run(0, *arguments.split())
    assert {one.split()[0] for one in asked} == {
        "/clusters",
        "/hosts",
        "/datacenters",
        *(one.split()[0] for one in asked.of("/schedulingpolic")),
    }


@pytest.mark.parametrize(
    "arguments", ["groups edit apart --priority 3", "groups list", "groups remove apart"]
)
def test_of_an_engine_that_is_followed_only_groups_are_read(
    followed: LiveEngine, asked: Asked, arguments: str
) -> None:
    followed.run(0, *arguments.split())
    assert [one for one in asked if not one.startswith("/clusters/")] == [
        "/clusters affinity_groups",
        "/affinitylabels vms,hosts",
    ]


def test_a_key_of_a_vm_that_is_known_costs_the_engine_nothing(followed: LiveEngine, asked: Asked) -> None:
    setting = ("keys", "set", "GEN", "1", "1", "--on", "server")
    followed.run(0, *setting, "web")
    assert asked == []
    Portal(followed.engine).add_vm(vm("v4", name="new", cluster="c1"))
    assert "server new" in followed.run(0, *setting, "new")[0]


def test_a_group_of_this_moment_is_listed(followed: LiveEngine) -> None:
    followed.run(0, "groups", "edit", "apart", "--name", "asunder")
    assert "asunder" in followed.run(0, "groups", "list")[0]


def test_what_is_not_known_yet_is_read_before_a_change_is_refused(followed: LiveEngine) -> None:
    Portal(followed.engine).add_vm(vm("v4", name="new", cluster="c1"))
    followed.run(0, "groups", "edit", "apart", "--add-vm", "new")
    # It is a member that the inventory does not know: nobody takes it out.
    followed.run(0, "groups", "edit", "apart", "--add-vm", "db")
    assert len(followed.engine.queries.state.groups_of("c1")[0].vms) == 4


def test_a_plan_is_made_of_what_is_published(followed: LiveEngine, asked: Asked) -> None:
    assert enforcer(["plan", "--config", str(followed.config)]) == 0
    assert asked.of("/clusters") == []


@pytest.mark.system
def test_a_slow_engine_takes_no_time_from_planning(serving: Starting) -> None:
    """There is time enough for the plan alone, and not for the reading as well."""
    violated = snapshot(host("h1"), host("h2"), vm("v1", "h1"), vm("v2", "h1"), group("g1", APART, "v1 v2"))
    with serving(violated) as live:
        live.server.disturbances.add(Disturbance(method="GET", path="/vms$", delay_seconds=2.0))
        options = ["--strategy", "greedy", "--deadline", "2", "--config", str(live.config)]
        assert enforcer(["plan", *options]) == REPAIRS_ALL
