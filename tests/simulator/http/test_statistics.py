"""Statistics have the engine's ids and its rounding."""

from __future__ import annotations

import pytest
from lxml import etree
from ovirtsdk4 import Connection

from ovirt_simulator.http.documents import statistic_id, two_digits
from ovirt_simulator.http.server import Server
from tests.paths import RECORDING
from tests.simulator.http.plain import request

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
        (12.34, "12"),
        (0.789, "0.79"),
        (99.6, "1.0E+2"),
        (99.0, "99"),
        (0.1, "0.10"),
        (0.0, "0"),
        (5.0, "5"),
        (2.5, "2.5"),
    ],
)
def test_decimals_have_two_digits_that_count(value: float, shown: str) -> None:
    """Sources: the engine's StatisticResourceUtils, and 0.10, 0 and 99 in the recording."""
    assert two_digits(value) == shown


def test_a_vms_statistics(sdk: Connection) -> None:
    service = sdk.system_service().vms_service().vm_service("web1").statistics_service()
    by_name = {each.name: each for each in service.list()}
    assert by_name["cpu.current.total"].values[0].datum == 12
    assert by_name["memory.installed"].values[0].datum == GIB
    one = by_name["memory.used"]
    assert service.statistic_service(one.id).get().values[0].datum == one.values[0].datum


def test_shape_is_that_of_the_recording(server: Server) -> None:
    """But for the description, which nobody reads."""
    recorded = next(iter(etree.parse(next(iter(RECORDING.glob("hosts_*_statistics.xml")))).getroot()))
    shown = request(f"{server.api_url}/hosts/host1/statistics").xml[0]
    assert [node.tag for node in shown.iter()] == [
        node.tag for node in recorded.iter() if node.tag != "description"
    ]
