"""`ovirt-placement keys` on state files, and every console example of its page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import msgspec
import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import DataCenter
from tests.builders import cluster, host, vm
from tests.paths import CHECKOUT
from tests.placement.cli.state_asking import StateAsking
from tests.placement.rules.placement_keys.nodes import key, keyed, node_key

PAGE = CHECKOUT / "docs" / "placement-keys.md"


def console_examples() -> Iterator[tuple[str, str]]:
    """The commands of the page, each with the output that follows it."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        command, _, output = block.removeprefix("$ ").partition("\n")
        yield command, output


@pytest.mark.parametrize(("command", "output"), list(console_examples()))
def test_page_shows_what_the_commands_print(
    command: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert main(shlex.split(command)[1:]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == output.splitlines()


MISTAKEN = keyed(
    host("h1", name="north"),
    host("h2", name="south"),
    vm("v1", name="web", custom_properties={"placement_keys": "Group1=1"}),
    vm("v2", custom_properties={"placement_keys": "A:1:0"}),
    keys=(
        key("K", "gold", 0, "cluster", resource="cluster1"),
        node_key("h1", "SAN", 1.0, sticky=True),
        node_key("h2", "SAN", 2.0, sticky=True, weight=60.0),
        node_key("h2", "GEN", 1.0),
    ),
)


def test_list_reports_who_set_what_where(asking: StateAsking) -> None:
    assert asking.lines(0, "keys list", MISTAKEN)[2:] == [
        "cluster cluster1 system K gold 0 normal",
        "node south system GEN 1 placement",
        "node north system SAN 1 placement",
        "node south system SAN 2 60 sticky",
    ]
    assert [one["kind"] for one in asking.data(0, "keys list", MISTAKEN)["keys"]] == [
        "normal",
        "placement",
        "placement",
        "sticky",
    ]


def test_check_reports_every_mistake_and_fails(asking: StateAsking) -> None:
    unreadable = "it is not of the form NAME:VALUE:WEIGHT,... and all of it is ignored"
    assert asking.lines(1, "keys check", MISTAKEN)[2:] == [
        "cluster cluster1: system key K its value is no number; it has no weight, so it is no placement key",
        "node north: system key SAN a sticky key needs a weight",
        "server v2: customer key A it has no weight, so it is no placement key",
        f"VM web: custom property placement_keys {unreadable}: Group1=1",
        "host north other hosts of its cluster have keys that it lacks: GEN",
    ]
    found = asking.data(1, "keys check", MISTAKEN)["mistakes"]
    assert [one["codes"] for one in found] == [
        ["value-not-numeric", "weight-zero"],
        ["sticky-without-weight"],
        ["weight-zero"],
        ["property-unreadable"],
        ["node-key-set-differs"],
    ]


def test_show_of_a_vm_names_what_is_hidden_and_what_is_ignored(asking: StateAsking) -> None:
    state = keyed(
        vm("v1", name="web"),
        keys=(
            key("K", 1.0, 100.0, "cluster", resource="cluster1"),
            key("K", 0.0, 5.0, resource="v1"),
            key("L", "gold", 5.0, resource="v1"),
        ),
    )
    assert asking.lines(0, "keys show web", state)[2:] == [
        "system K 0 5 server web cluster cluster1: 1 (100)",
        "",
        "ignored: server web: L: its value is no number",
    ]
    shown = asking.data(0, "keys show v1", state)
    assert (shown["system"]["K"]["value"], shown["system"]["K"]["hidden"][0]["weight"]) == (0, 100)
    assert shown["ignored"][0]["codes"] == ["value-not-numeric"]


def test_show_of_a_host_counts_what_vms_brought(asking: StateAsking) -> None:
    state = keyed(
        host("h1", cpu_percent=None),
        vm("a", "h1", vcpus=4, memory_mb=1024),
        vm("b", "h1", vcpus=4, memory_mb=1024),
        keys=(node_key("h1", "SAN", 2.0, sticky=True, weight=60.0), node_key("h1", "_GREEN", 0.8)),
        frozen={"a": {"G": 1.0}, "b": {"G": 1.0}},
    )
    assert asking.lines(0, "keys show h1", state)[2:] == [
        "system #CPU 0.5 1",
        "system #RAM 0.03125 1",
        "system SAN 2 1 sticky",
        "customer G 1 2",
        "customer _GREEN 0.8 1",
        "",
        "Contention ratios: memory 1 (the cluster's), CPUs 1 (the cluster's)",
    ]
    assert asking.data(0, "keys show h1", state)["customer"][0] == {"name": "G", "value": 1.0, "count": 2}


def test_show_and_explain_go_by_the_parameters_of_the_hosts_policy(asking: StateAsking) -> None:
    parameters = {"load": "average", "cpu_ratio": "2", "reserved_from_vms": "true"}
    state = keyed(
        cluster(scheduling_properties={f"placement_{name}": text for name, text in parameters.items()}),
        host("h1", cpu_percent=90, load_average_5m=4),
        vm("a", "h1", vcpus=16, memory_mb=1024),
        vm("v1"),
        keys=(key("#LOAD", 0.0, resource="v1"),),
        frozen={"a": {"_GREEN": 1.0}},
    )
    assert asking.lines(0, "keys show h1", state)[2:] == [
        "system #CPU 0.5 1",
        "system #LOAD 0.25 1",
        "system #RAM 0.015625 1",
        "customer _GREEN 1 1",
        "",
        "Contention ratios: memory 1 (the cluster's), CPUs 2 (the policy's)",
    ]
    assert asking.lines(0, "keys explain v1", state)[2] == "h1 #LOAD: 100 x 0.75 75 2 0 chosen"


def test_explain_reports_why_there_is_no_host(asking: StateAsking) -> None:
    full = keyed(host("h1", memory_mb=1024, status="maintenance", memory_free_mb=5), vm("v1", memory_mb=1024))
    assert asking.lines(0, "keys explain v1", full)[2:] == [
        "h1 is not up no room",
        "1024 MiB not handed out, 2048 must fit with some to spare",
        "5 MiB physically free, 2048 must fit with some to spare",
        "",
        "No host is capable of running it.",
    ]
    forbidden = keyed(
        host("h1"), vm("v1"), keys=(key("K", weight=-200.0, resource="v1"), node_key("h1", "K"))
    )
    assert asking.lines(0, "keys explain v1", forbidden)[2:] == [
        "h1 K: -200 x 1 -200 refused",
        "",
        "No host's score is above the last threshold, -10.",
    ]
    answer = asking.data(0, "keys explain v1", forbidden)
    assert (answer["failed"], answer["hosts"][0]["system"]["total"]) == ("threshold", -200)


def test_explain_leaves_the_present_host_out(asking: StateAsking) -> None:
    state = keyed(host("h1"), host("h2"), vm("v1", "h1"))
    assert asking.data(0, "keys explain v1", state)["choice"] == ["h2"]


def test_explain_says_that_local_storage_decides(asking: StateAsking) -> None:
    local = msgspec.structs.replace(
        keyed(cluster(data_center="dc"), host("h1"), vm("v1")),
        data_centers=(DataCenter(id="dc", name="dc", local_storage=True),),
    )
    assert asking.lines(0, "keys explain v1", local) == [
        "Its storage is local, so that keys do not count: h1."
    ]
