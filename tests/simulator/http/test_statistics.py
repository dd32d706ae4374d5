"""What hosts and VMs measure, with the engine's ids and its rounding."""

from typing import Any

import pytest
from lxml import etree
from ovirtsdk4.services import SystemService

from ovirt_simulator.core.backend import Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.documents import statistic_id, two_digits
from tests.builders import host, vm
from tests.paths import RECORDING
from tests.simulator.core import engines
from tests.simulator.http.plain import Api

GIB = 1 << 30


def test_ids_follow_from_names_as_in_the_recording() -> None:
    """The recorded engine's ids, Java's own, are the oracle."""
    recorded = [node for file in RECORDING.glob("*_statistics.xml") for node in etree.parse(file).getroot()]
    assert len(recorded) > 30
    for node in recorded:
        assert statistic_id(node.findtext("name") or "") == node.get("id")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((12.34, "12"), (0.789, "0.79"), (99.6, "1.0E+2"), (99.0, "99")),
        *((0.1, "0.10"), (0.0, "0"), (5.0, "5"), (2.5, "2.5")),
    ],
)
def test_decimals_have_two_digits_that_count(value: float, shown: str) -> None:
    """Sources: the engine's StatisticResourceUtils, and 0.10, 0 and 99 in the recording."""
    assert two_digits(value) == shown


def test_a_vms_statistics(system: SystemService) -> None:
    service = system.vms_service().vm_service("web1").statistics_service()
    by_name = {each.name: each for each in service.list()}
    assert by_name["cpu.current.total"].values[0].datum == 12
    assert by_name["memory.installed"].values[0].datum == GIB
    one = by_name["memory.used"]
    assert service.statistic_service(one.id).get().values[0].datum == one.values[0].datum


def test_shape_is_that_of_the_recording(api: Api) -> None:
    """But for the description, which nobody reads."""
    recorded = etree.parse(next(iter(RECORDING.glob("hosts_*_statistics.xml")))).getroot()[0]
    shown = api("hosts/host1/statistics").xml[0]
    assert [node.tag for node in shown.iter()] == [
        node.tag for node in recorded.iter() if node.tag != "description"
    ]


HOST = {"memory_mb": 10240, "memory_free_mb": 4096, "cpu_percent": 50, "cores": 8}


def of_host(engine: Engine) -> dict[str, float]:
    return {s.name: float(s.value) for s in engine.queries.host_statistics("h1")}


def of_vm(engine: Engine, vm_id: str) -> dict[str, float]:
    return {s.name: float(s.value) for s in engine.queries.vm_statistics(vm_id)}


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (HOST, {"memory.total": 10 * GIB, "memory.used": 6 * GIB, "memory.free": 4 * GIB}),
        (HOST, {"cpu.current.idle": 50, "cpu.load.avg.5m": 4}),
        ({**HOST, "load_average_5m": 6.5}, {"cpu.load.avg.5m": 6.5}),
        ({**HOST, "load_average_5m": 0}, {"cpu.load.avg.5m": 0}),
        ({"cpu_percent": None}, {"cpu.current.user": 0}),
    ],
)
def test_a_host_reports_what_the_state_file_has_or_what_follows_from_it(
    given: dict[str, Any], reported: dict[str, float]
) -> None:
    found = of_host(engines.engine(host("h1", **given)))
    assert {name: found[name] for name in reported} == pytest.approx(reported)
    assert "cpu.current.total" not in found
    busy = found["cpu.current.user"] + found["cpu.current.system"]
    assert busy == pytest.approx(given["cpu_percent"] or 0)


def test_a_host_that_is_not_up_reports_zeros() -> None:
    found = of_host(engines.engine(host("h1", status="maintenance", load_average_5m=3, **HOST)))
    assert not any(found.values())


def test_a_vm_reports_what_it_uses_and_nothing_while_it_is_down() -> None:
    used = vm("v", "h1", memory_mb=1024, usage_mem_percent=25, usage_cpu_percent=40)
    engine = engines.engine(host("h1"), used, vm("d", memory_mb=1024))
    engine.advance(90)
    expected = {"memory.installed": GIB, "memory.used": GIB // 4, "cpu.current.total": 40}
    assert expected.items() <= of_vm(engine, "v").items()
    assert {name: value for name, value in of_vm(engine, "d").items() if value} == {"memory.installed": GIB}


def test_figures_wobble_from_report_to_report_and_are_exact_before_the_first() -> None:
    settings = Settings(statistics_seconds=15, statistics_wobble_percent=10)
    busy = vm("v", "h1", vcpus=4, usage_cpu_percent=50)
    engine = engines.engine(host("h1", **HOST), busy, settings=settings)
    assert of_vm(engine, "v")["cpu.current.total"] == 50
    seen = []
    for _ in range(10):
        engine.advance(15)
        seen.append((of_vm(engine, "v")["cpu.current.total"], of_host(engine)["cpu.current.user"]))
        assert seen[-1] == (of_vm(engine, "v")["cpu.current.total"], of_host(engine)["cpu.current.user"])
    assert len(set(seen)) > 5
    assert all(45 <= cpu <= 55 for cpu, _ in seen)
    assert len({cpu for _, cpu in seen}) > 5


def test_a_vm_whose_use_nobody_knows_uses_something_once_it_runs() -> None:
    engine = engines.engine(host("h1"), vm("v", usage_mem_percent=None, usage_cpu_percent=None))
    engine.vms.start("v")
    engine.advance(10)
    found = of_vm(engine, "v")
    assert found["memory.used"] > 0
    assert found["cpu.current.total"] > 0
