"""Contention ratios of single hosts: set, seen, explained, carried in files, refused where they cannot be."""

from __future__ import annotations

from pathlib import Path

from tests.builders import cluster, host, snapshot, vm
from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.state_asking import StateAsking
from tests.placement.rules.placement_keys.nodes import keyed, node_key

#: 11000 of 12000 MiB are handed out on each: neither has room for another VM without contention.
PARTS = (
    cluster(
        "c1",
        name="blue",
        memory_overcommit_percent=200,
        scheduling_properties={"placement_memory_ratio": "1"},
    ),
    host("h1", name="north", cluster="c1", memory_mb=12_000, memory_free_mb=50_000),
    host("h2", name="south", cluster="c1", memory_mb=12_000, memory_free_mb=50_000),
    vm("a", "h1", cluster="c1", memory_mb=11_000),
    vm("b", "h2", cluster="c1", memory_mb=11_000),
    vm("new", cluster="c1", memory_mb=1000),
)


def chosen(live: LiveEngine) -> list[str]:
    found: list[str] = live.data(0, "keys", "explain", "new")["choice"]
    return found


def test_a_ratio_is_set_and_removed_on_one_host_alone(serving: Starting) -> None:
    with serving(snapshot(*PARTS)) as live:
        assert chosen(live) == []
        out, _ = live.run(0, "keys", "set", "#RAM_RATIO", "1.5", "--on", "node", "south")
        assert out.startswith("set node south: system key #RAM_RATIO: 1.5\nnote: no effect: the policy of")
        assert chosen(live) == ["h2"]
        assert live.data(0, "keys", "check")["mistakes"] == []
        assert [one["kind"] for one in live.data(0, "keys", "list")["keys"]] == ["ratio"]
        live.run(0, "keys", "unset", "#RAM_RATIO", "--on", "node", "south")
        assert chosen(live) == []


def test_define_gives_one_to_the_hosts_that_are_named(serving: Starting) -> None:
    with serving(snapshot(*PARTS)) as live:
        live.run(0, "keys", "define", "#CPU_RATIO", "--cluster", "blue", "--values", "north=4")
        assert [one["place"] for one in live.data(0, "keys", "list")["keys"]] == ["node north"]
        live.run(0, "keys", "define", "#CPU_RATIO", "--cluster", "blue", "--default", "3")
        assert [one["value"] for one in live.data(0, "keys", "list")["keys"]] == [3.0, 3.0]
        live.run(0, "keys", "unset", "#CPU_RATIO", "--cluster", "blue")
        assert live.data(0, "keys", "list")["keys"] == []


def test_show_reports_the_ratios_and_whose_word_they_are(serving: Starting) -> None:
    by_policy = {"placement_memory_ratio": "2"}
    state = snapshot(cluster("c1", name="blue", scheduling_properties=by_policy), *PARTS[1:])
    with serving(state) as live:
        live.run(0, "keys", "set", "#CPU_RATIO", "4", "--on", "node", "south")
        assert live.data(0, "keys", "show", "south")["ratios"] == {
            "memory": {"value": 2.0, "source": "policy"},
            "cpu": {"value": 4.0, "source": "host"},
        }
        out, _ = live.run(0, "keys", "show", "north")
        assert out.splitlines()[-1] == "Contention ratios: memory 2 (the policy's), CPUs 1 (the cluster's)"


def test_a_ratio_survives_a_file(serving: Starting, tmp_path: Path) -> None:
    with serving(snapshot(*PARTS)) as live:
        live.run(0, "keys", "set", "#RAM_RATIO", "1.5", "--on", "node", "south")
        file = tmp_path / "keys.yaml"
        file.write_text(live.run(0, "keys", "export")[0])
        live.run(0, "keys", "unset", "#RAM_RATIO", "--on", "node", "south")
        live.run(0, "keys", "import", str(file))
        assert chosen(live) == ["h2"]


def test_in_a_state_file_a_good_one_counts_and_a_wrong_one_is_reported(asking: StateAsking) -> None:
    good, bad = (keyed(*PARTS, keys=(node_key("h2", "#RAM_RATIO", ratio),)) for ratio in (1.5, -1.5))
    assert asking.data(0, "keys explain new", good)["choice"] == ["h2"]
    assert asking.data(0, "where new --placement-keys", good)
    assert asking.data(0, "keys explain new", bad)["choice"] == []
    (wrong,) = asking.data(1, "keys check", bad)["mistakes"]
    assert (wrong["where"], wrong["codes"]) == ("node south: system key #RAM_RATIO", ["ratio-out-of-range"])
