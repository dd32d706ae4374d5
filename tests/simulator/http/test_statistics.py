"""What hosts and VMs measure, with the engine's ids and its rounding."""

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


def of_host(engine: Engine, host_id: str = "h1") -> dict[str, float]:
    return {s.name: float(s.value) for s in engine.queries.host_statistics(host_id)}


def of_vm(engine: Engine, vm_id: str) -> dict[str, float]:
    return {s.name: float(s.value) for s in engine.queries.vm_statistics(vm_id)}


def test_a_host_reports_its_figures_as_the_state_file_has_them() -> None:
    found = of_host(engines.engine(host("h1", **HOST)))
    assert found["memory.total"] == 10 * GIB
    assert found["memory.used"] == 6 * GIB
    assert found["memory.free"] == 4 * GIB
    assert found["cpu.current.user"] + found["cpu.current.system"] == pytest.approx(50)
    assert found["cpu.current.idle"] == pytest.approx(50)
    assert "cpu.current.total" not in found


@pytest.mark.parametrize(("given", "reported"), [(None, 4), (6.5, 6.5), (0, 0)])
def test_a_load_average_is_the_state_files_or_follows_from_how_busy_the_host_is(
    given: float | None, reported: float
) -> None:
    found = of_host(engines.engine(host("h1", load_average_5m=given, **HOST)))
    assert found["cpu.load.avg.5m"] == reported


def test_a_host_that_is_not_up_reports_zeros() -> None:
    found = of_host(engines.engine(host("h1", status="maintenance", load_average_5m=3, **HOST)))
    assert not any(found.values())


def test_a_host_without_statistics_reports_no_cpu() -> None:
    assert of_host(engines.engine(host("h1", cpu_percent=None)))["cpu.current.user"] == 0


def test_a_vm_reports_what_it_uses_and_nothing_while_it_is_down() -> None:
    engine = engines.engine(
        host("h1"),
        vm("v", "h1", memory_mb=1024, usage_mem_percent=25, usage_cpu_percent=40),
        vm("d", memory_mb=1024),
    )
    engine.advance(90)
    found = of_vm(engine, "v")
    assert found["memory.installed"] == GIB
    assert found["memory.used"] == GIB // 4
    assert found["cpu.current.total"] == 40
    down = of_vm(engine, "d")
    assert down["memory.installed"] == GIB
    assert {name for name, value in down.items() if value} == {"memory.installed"}


def test_figures_wobble_from_report_to_report_and_are_exact_before_the_first() -> None:
    settings = Settings(statistics_seconds=15, statistics_wobble_percent=10)
    engine = engines.engine(
        host("h1", **HOST), vm("v", "h1", vcpus=4, usage_cpu_percent=50), settings=settings
    )
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
