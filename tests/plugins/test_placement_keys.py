"""The units for placement keys as both proxies run them: warm workers, and a new process for each call."""

import re
from collections.abc import Iterator
from typing import Any
from xmlrpc.client import ServerProxy

import pytest
from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, Snapshot
from tests.builders import CLUSTER, host, key, node_key, snapshot, vm
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher, answered_alone

HOSTS = ["h1", "h2", "h3", "h4", "h5"]
Args = dict[str, str]
NONE: Args = {}
FIXED = {"placement_tie": "engine"}


KEYS = (
    *(node_key(name, "GEN", value) for name, value in zip(HOSTS, (1, 1, 0.5, 0, 0), strict=True)),
    *(node_key(name, "PRIVATE", float(name == "h4")) for name in HOSTS),
    key("GEN", 1, 60, "cluster", resource=CLUSTER),
    key("PRIVATE", 1, -200, "cluster", resource=CLUSTER),
)
FROZEN = {"web1": (("Repel1", 1.0),)}


def world() -> Snapshot:
    """Round 3 on h1 and h2, 6 on h3, the last on h5; h4 is private. A web server runs on h1."""
    return snapshot(
        *(host(name, memory_free_mb=30000) for name in HOSTS),
        vm("web1", "h1"),
        vm("new", custom_properties={"placement_keys": "Repel1:1:-100"}),
        vm("large", memory_mb=29000),
    )


class Units:
    """The units in a proxy, over one published snapshot."""

    def __init__(self, publisher: Publisher, proxy: ServerProxy) -> None:
        self.publisher = publisher
        self.proxy = proxy

    def accepted(self, vm_id: str, hosts: list[str] = HOSTS, args: Args = NONE) -> list[str]:
        reply: Any = self.proxy.runFilters(["PlacementKeyFilter"], hosts, vm_id, args)
        assert reply["result_code"] == 0, reply
        return [str(found) for found in reply["result"]]

    def ranks(self, vm_id: str, hosts: list[str] = HOSTS, args: Args = NONE) -> dict[str, int]:
        reply: Any = self.proxy.runCostFunctions([("PlacementKeyWeight", 1)], hosts, vm_id, args)
        assert reply["result_code"] == 0, reply
        return {found: rank for found, rank, _ in reply["result"]}


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Units]:
    folder = tmp_path_factory.mktemp("published")
    publisher = Publisher(folder)
    frozen = tuple(FrozenKeys(name, keys) for name, keys in FROZEN.items())
    publisher.publish(replace(world(), placement_keys=KEYS, frozen_keys=frozen))
    with running_proxy(publisher.environment) as proxy:
        proxy.discover()  # the connection is for all
        yield Units(publisher, proxy)


def test_filter_keeps_every_round_and_refuses_what_the_operator_refuses(units: Units) -> None:
    assert units.accepted("new") == ["h1", "h2", "h3", "h5"]
    assert units.accepted("new", ["h4"]) == []
    assert units.accepted("new", args={"placement_final": "0"}) == ["h1", "h2", "h3"]


def test_filter_refuses_hosts_without_room_for_the_vm_and_the_overhead(units: Units) -> None:
    assert units.accepted("large") == []
    assert units.accepted("large", args={"placement_overhead": "999"}) == ["h1", "h2", "h3", "h5"]
    assert units.accepted("new", args={"placement_memory_ratio": "0.029"}) == []


def test_weight_orders_by_round_then_by_the_customer_and_answers_for_every_host(units: Units) -> None:
    assert units.ranks("new", args=FIXED) == {"h2": 0, "h1": 1, "h3": 2, "h5": 3, "h4": 4}
    assert units.ranks("new", ["h4"]) == {"h4": 0}
    # One round for all that are acceptable: only the customer is left.
    assert units.ranks("new", args={"placement_steps": "1"} | FIXED) == {
        "h2": 0,
        "h3": 0,
        "h5": 0,
        "h1": 1,
        "h4": 2,
    }


def test_a_tie_is_drawn_unless_the_engine_shall_decide(units: Units) -> None:
    assert units.ranks("large", ["h1", "h2"], {"placement_overhead": "0"} | FIXED) == {"h1": 0, "h2": 0}
    first: set[str] = set()
    while first != {"h1", "h2"}:  # that it never ends is as likely as that no one ever wins a lottery
        ranks = units.ranks("large", ["h1", "h2", "h3"], {"placement_overhead": "0"})
        assert sorted(ranks.values()) == [0, 1, 2]
        assert ranks["h3"] == 2
        first.add(min(ranks, key=lambda found: ranks[found]))


def test_a_process_a_call_answers_as_warm_workers_do(units: Units) -> None:
    call, environment = "placement_keys.PlacementKey", units.publisher.environment
    filtered = answered_alone(f"{call}Filter().do_filter({HOSTS}, 'new', {{}})", environment)
    weighed = answered_alone(f"{call}Weight().do_score({HOSTS}, 'new', {FIXED})", environment)
    assert (filtered, dict(weighed)) == (units.accepted("new"), units.ranks("new", args=FIXED))


def test_parameters_that_cannot_be_together_are_the_defaults(units: Units) -> None:
    assert units.accepted("new", args={"placement_initial": "-20"}) == units.accepted("new")
    assert units.ranks("new", args={"placement_initial": "-20"} | FIXED) == units.ranks("new", args=FIXED)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("initial", ["80", "-10", "0.5"], ["", "x", "1e3", "1.", "80 "]),
        ("final", ["-10", "0"], ["--1"]),
        ("steps", ["1", "10", "100"], ["0", "101", "1.5"]),
        ("overhead", ["0", "1024"], ["-1", "1.5"]),
        ("memory_ratio", ["1", "1.50", "0.25", "0.50", "0.0001"], ["0", "0.0", "0.0000", "-1", "1000"]),
        ("cpu_ratio", ["4", "0.5"], ["0"]),
        ("reserved_from_vms", ["true", "false"], ["yes"]),
        ("load", ["cpu", "average"], ["", "load", "cpuaverage"]),
        ("tie", ["random", "engine"], ["ran"]),
    ],
)
def test_the_engine_lets_only_numbers_in_that_can_be(
    units: Units, name: str, good: list[str], bad: list[str]
) -> None:
    found: Any = units.proxy.discover()
    declared = found["scores"]["PlacementKeyWeight"][1]
    patterns = dict(part.split("=", 1) for part in declared.split(";"))
    assert all(re.fullmatch(patterns[f"placement_{name}"], value) for value in good)
    assert not any(re.fullmatch(patterns[f"placement_{name}"], value) for value in bad)
    assert found["filters"]["PlacementKeyFilter"][1] == declared.rpartition(";")[0]
