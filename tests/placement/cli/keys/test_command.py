"""`ovirt-placement keys` on state files, keys in other questions, and every console example of the pages."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_placement.cli.main import main
from ovirt_placement.model import DataCenter, SchedulingPolicy, Snapshot, state_file
from tests.builders import cluster, host, key, node_key, vm
from tests.docs.shown import fenced, lines_of, printed
from tests.paths import CHECKOUT
from tests.placement.cli.live_engine import Starting, StateAsking, cells
from tests.placement.rules.placement_keys.nodes import keyed

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
        node_key("h2", "#RAM_RATIO", 1.5),  # which need not stand on every host
    ),
)


def test_list_reports_who_set_what_where(asking: StateAsking) -> None:
    assert asking.lines(0, "keys list", MISTAKEN)[2:] == [
        "cluster cluster1 system K gold 0 normal",
        "node south system #RAM_RATIO 1.5 ratio",
        "node south system GEN 1 placement",
        "node north system SAN 1 placement",
        "node south system SAN 2 60 sticky",
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
    assert found[0]["codes"] == ["value-not-numeric", "weight-zero"]
    assert asking.data(0, "keys explain web", MISTAKEN)["choice"] == ["h1", "h2"], "it stops nothing"


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


def test_explain_reports_why_no_host_has_room(asking: StateAsking) -> None:
    full = keyed(host("h1", memory_mb=1024, status="maintenance", memory_free_mb=5), vm("v1", memory_mb=1024))
    lines = asking.lines(0, "keys explain v1", full)
    assert "1024 MiB not handed out, 2048 must fit with some to spare" in lines
    assert lines[-1] == "No host is capable of running it."


def test_explain_leaves_the_present_host_out_and_says_that_local_storage_decides(asking: StateAsking) -> None:
    assert asking.data(0, "keys explain v1", keyed(host("h1"), host("h2"), vm("v1", "h1")))["choice"] == [
        "h2"
    ]
    state = keyed(cluster(data_center="dc"), host("h1"), vm("v1"))
    local = replace(state, data_centers=(DataCenter(id="dc", name="dc", local_storage=True),))
    lines = asking.lines(0, "keys explain v1", local)
    assert lines == ["Its storage is local, so that keys do not count: h1."]


def test_explain_chooses_no_host_that_the_weight_ranks_last_whatever_keys_say(asking: StateAsking) -> None:
    hosts = host("h1", failover=True), host("h2"), host("h3", failover=True)
    state = keyed(*hosts, vm("v1"), keys=(key("GEN", resource="v1"), node_key("h1", "GEN")))
    assert asking.lines(0, "keys explain v1", state)[-2:] == [
        "Round 10 (above -10): h2.",
        "Ranked last regardless of keys, as failover hosts or away from the VM's affinity group: h1, h3.",
    ]
    assert asking.data(0, "where v1 --placement-keys", state)["hosts"][0]["host"] == "h2"


# -- `keys list` shows all keys, or those of a name, a level, or one object; also of a state file.
LISTED = keyed(
    host("h1", name="north"),
    host("h2", name="south"),
    vm("v1", name="web"),
    keys=(
        key("GEN", 1.0, 5.0, "cluster", resource="cluster1"),
        node_key("h1", "GEN", 1.0),
        node_key("h2", "GEN", 2.0),
        node_key("h1", "SAN", 1.0),
        key("SAN", 1.0, 5.0, "server", resource="v1"),
    ),
)


def places(asking: StateAsking, arguments: str) -> list[str]:
    found = asking.data(0, f"keys list {arguments}", LISTED)["keys"]
    return [f"{one['place']} {one['name']}" for one in found]


ON_HOSTS = ["node north GEN", "node south GEN", "node north SAN"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("", ["cluster cluster1 GEN", *ON_HOSTS, "server web SAN"]),
        ("--name GEN", ["cluster cluster1 GEN", *ON_HOSTS[:2]]),
        ("--on node", ON_HOSTS),
        ("--on node north", ["node north GEN", "node north SAN"]),
        ("--on node h2 --name GEN", ["node south GEN"]),
        ("--on image", []),
        ("--name Gen", []),
    ],
)
def test_only_what_was_asked_for_is_listed(asking: StateAsking, arguments: str, found: list[str]) -> None:
    assert places(asking, arguments) == found


def test_a_file_of_keys_can_be_listed_as_if_it_were_set(asking: StateAsking, tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("keys: [{level: server, resource: web, name: NEW, value: 1, weight: 5}]")
    assert places(asking, f"--keys {file}") == ["server web NEW"]


# -- `why` and `where` where a cluster's policy enables the units of placement keys, and where it does not.
BY_KEYS = SchedulingPolicy(
    filters=("PlacementKeyFilter",), weights={"PlacementKeyWeight": 10, "SoftAffinityWeight": 1}
)


def state(policy: SchedulingPolicy | None, **properties: str) -> Snapshot:
    """A new host that is refused, an old one, and one of middle age with a rival of the VM on it."""
    return keyed(
        cluster(scheduling_policy=policy, scheduling_properties=properties),
        host("h1", name="new"),
        host("h2", name="old"),
        host("h3", name="middle"),
        vm("v1", name="web"),
        vm("v2", "h3", name="rival"),
        keys=(
            key("GEN", 1.0, 80.0, "cluster", resource="cluster1"),
            key("PRIVATE", 1.0, -200.0, "cluster", resource="cluster1"),
            key("Apart", 1.0, -50.0, key_class="customer", resource="v1"),
            *(node_key(f"h{i}", "GEN", age) for i, age in ((1, 1.0), (2, 0.0), (3, 0.5))),
            *(node_key(f"h{i}", "PRIVATE", value) for i, value in ((1, 1.0), (2, 0.0), (3, 0.0))),
        ),
        frozen={"v2": {"Apart": 1.0}},
    )


def table(asking: StateAsking, command: str, of: Snapshot) -> list[list[str]]:
    """The cells of the table, with its title."""
    return [cells(line) for line in asking.text(0, command, of).splitlines()]


def test_why_shows_the_verdict_of_the_keys_with_nearness_score_and_round(asking: StateAsking) -> None:
    title, _, *rows = table(asking, "why web", state(BY_KEYS))
    assert title[3:] == ["by", "system keys", "score", "round", "customer keys", "score"]
    refusal = "the placement keys give it -120, which is not above the last threshold"
    assert rows == [
        ["new", "refused", refusal, "PlacementKeyFilter", "GEN: 80 x 1", "-120"],
        ["PRIVATE: -200 x 1"],
        ["old", "accepted", "GEN: 80 x 0", "0", "10", "0"],
        ["PRIVATE: -200 x 0"],
        ["middle", "accepted", "GEN: 80 x 0.5", "40", "6", "Apart: -50 x 1", "-50"],
        ["PRIVATE: -200 x 0"],
    ]


def test_where_orders_hosts_by_keys_with_the_policys_factor(asking: StateAsking) -> None:
    def by_keys(host: dict[str, Any]) -> list[int]:
        """The rank that keys give a host."""
        return [one["rank"] for one in host["weights"] if one["unit"] == "PlacementKeyWeight"]

    best, worst = asking.data(0, "where web", state(BY_KEYS))["hosts"]
    tied = 1  # a point of the other unit of the policy, which prefers neither
    assert [(one["host"], by_keys(one), one["points"]) for one in (best, worst)] == [
        ("h3", [0], 10 + tied),
        ("h2", [1], tied),
    ]
    assert best["placement_keys"]["system"]["total"] == 40


@pytest.mark.parametrize(
    "policy", [None, SchedulingPolicy(), SchedulingPolicy(weights={"SoftAffinityWeight": 1})]
)
def test_without_the_units_keys_do_not_count_unless_asked_for(
    asking: StateAsking, policy: SchedulingPolicy | None
) -> None:
    for command in ("why web", "where web"):
        assert "system keys" not in table(asking, command, state(policy))[0]
        assert asking.data(0, command, state(policy))["hosts"][0]["placement_keys"] is None
        assert "system keys" in table(asking, f"{command} --placement-keys", state(policy))[0]
    assert all(one["accepted"] for one in asking.data(0, "why web", state(policy))["hosts"])
    assert not asking.data(0, "why web --placement-keys", state(policy))["hosts"][0]["accepted"]


def test_the_policys_parameters_count(asking: StateAsking) -> None:
    lenient = state(BY_KEYS, placement_final="-150", placement_steps="2", placement_initial="30")
    found = asking.data(0, "why web", lenient)["hosts"]
    assert [one["placement_keys"]["round"] for one in found] == [2, 2, 1]
    impossible = state(BY_KEYS, placement_final="90")
    assert asking.data(0, "why web", impossible)["hosts"][2]["placement_keys"]["round"] == 6


def test_a_reason_that_two_filters_give_is_reported_once(asking: StateAsking) -> None:
    down = keyed(cluster(scheduling_policy=BY_KEYS), host("h1", status="maintenance"), vm("v1"))
    ((reason,),) = (one["reasons"] for one in asking.data(0, "why v1", down)["hosts"])
    named = [unit["name"] for unit in reason["by"]]
    assert (reason["kind"], named) == ("host_not_up", ["Status", "PlacementKeyFilter"])


# -- The page, and the commented examples in its folder: they print what they say, and can be imported.
PAGE, FOLDER = CHECKOUT / "docs" / "placement-keys.md", CHECKOUT / "docs" / "placement-keys"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def shown(file: Path) -> list[tuple[str, list[str]]]:
    """The commands of the page or in a file's comments, each with the lines that it prints."""
    if file == PAGE:
        return printed(fenced(file.read_text(), "console"))
    comments = [line[1:].removeprefix(" ") for line in file.read_text().splitlines() if line[:1] == "#"]
    return printed(["\n".join(comments)])


@pytest.mark.parametrize("file", [PAGE, *EXAMPLES], ids=lambda file: file.stem)
def test_pages_show_what_the_commands_print(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert shown(file)
    for command, output in shown(file):
        assert main(shlex.split(command)[1:]) == 0
        assert lines_of(capsys.readouterr().out) == output


@pytest.mark.system
def test_every_example_can_be_imported_and_has_no_mistakes(serving: Starting) -> None:
    with serving(state_file.load(FOLDER / "cluster.json")) as live:
        for example in EXAMPLES:
            live.run(0, "keys", "import", str(example), "--replace")
            live.run(0, "keys check")
