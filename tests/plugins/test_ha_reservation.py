"""The units for HA reservation in warm workers behind XML-RPC."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest

from tests.builders import cluster, host, snapshot, vm
from tests.plugins.proxy_process import running_proxy
from tests.plugins.published import Publisher

HOSTS = ["h1", "h2", "h3"]
RESERVING = cluster(ha_reservation=True)


def vm_id(number: int) -> str:
    """An id as the engine has them: the proxy passes on no other."""
    return f"00000000-0000-0000-0000-{number:012d}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Publisher, ServerProxy]]:
    """A proxy of its own for each test: the balance remembers since when hosts have been overloaded."""
    publisher = Publisher(tmp_path)
    with running_proxy(publisher.environment) as proxy:
        yield publisher, proxy


def balanced(served: tuple[Publisher, ServerProxy], hosts: list[str], **parameters: str) -> Any:
    _, proxy = served
    properties = {f"ha_balance_{name}": value for name, value in parameters.items()}
    reply: Any = proxy.runLoadBalancing("HaReservationBalance", hosts, properties)
    assert reply["result_code"] == 0
    return reply["result"]


def test_balance_spreads_ha_before_load_and_answers_two_fields_when_all_is_even(
    served: tuple[Publisher, ServerProxy],
) -> None:
    publisher, _ = served
    crowd = [vm(vm_id(number), "h1", ha=True) for number in range(2)]
    publisher.publish(
        snapshot(
            RESERVING,
            host("h1", cpu_percent=95),
            host("h2"),
            host("h3"),
            *crowd,
            vm(vm_id(9), "h1", usage_cpu_percent=1),
        )
    )
    assert balanced(served, HOSTS) == [vm_id(0), ["h2", "h3"]]
    assert balanced(served, HOSTS, over_utilization="301") == [vm_id(9), ["h2", "h3"]]
    publisher.publish(snapshot(RESERVING, *map(host, HOSTS), crowd[0]))
    assert balanced(served, HOSTS) == ["", []]
    assert balanced(served, ["unknown"]) == ["", []]


def test_load_moves_no_ha_vm_to_where_it_would_crowd(served: tuple[Publisher, ServerProxy]) -> None:
    publisher, _ = served
    spread = [vm(vm_id(number), f"h{number}", ha=True) for number in (1, 2)]
    busy = host("h1", cpu_percent=95)
    publisher.publish(snapshot(RESERVING, busy, host("h2"), *spread))
    assert balanced(served, ["h1", "h2"]) == ["", []]
    publisher.publish(snapshot(cluster(), busy, host("h2"), *spread))
    assert balanced(served, ["h1", "h2"]) == [vm_id(1), ["h2"]]


def test_host_must_stay_overloaded_for_the_minutes_set(served: tuple[Publisher, ServerProxy]) -> None:
    """Only what is overloaded at the first look is taken to have been so for long."""
    publisher, _ = served
    publisher.publish(snapshot(host("h1"), host("h2"), vm("a", "h1")))
    assert balanced(served, ["h1", "h2"]) == ["", []]
    publisher.publish(snapshot(host("h1", cpu_percent=95), host("h2"), vm("a", "h1")))
    assert balanced(served, ["h1", "h2"]) == ["", []]


def test_parameters_reach_the_policy_editor(served: tuple[Publisher, ServerProxy]) -> None:
    _, proxy = served
    found: Any = proxy.discover()
    assert "ha_measure=(resources|vms);ha_weight_scale_down=" in found["scores"]["HaReservationWeight"][1]
    names = [part.partition("=")[0] for part in found["balance"]["HaReservationBalance"][1].split(";")]
    assert len(names) == 7
    assert all(name == "ha_measure" or name.startswith("ha_balance_") for name in names)


def test_admission_control_refuses_a_start_that_takes_the_reserve(
    served: tuple[Publisher, ServerProxy],
) -> None:
    publisher, proxy = served
    new = vm_id(1)
    hosts = host("h1"), host("h2", free_mb=4000), host("h3", free_mb=2000)
    db = vm(vm_id(2), "h1", ha=True, needs_mb=4000)
    publisher.publish(snapshot(RESERVING, *hosts, db, vm(new, needs_mb=1000)))
    answer: Any = proxy.runFilters(["HaAdmissionFilter"], HOSTS, new, {})
    assert (answer["result_code"], sorted(answer["result"])) == (0, ["h1", "h3"])
    ranks: Any = proxy.runCostFunctions([["HaAdmissionWeight", 1]], HOSTS, new, {})
    assert {each[0]: each[1] for each in ranks["result"]} == {"h1": 0, "h2": 1, "h3": 0}
    moved: Any = proxy.runFilters(["HaAdmissionFilter"], ["h2", "h3"], db.id, {})
    assert sorted(moved["result"]) == ["h2", "h3"]
