"""The CD-ROM and the graphics consoles of a VM."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes


def cdrom(disk_id: str) -> types.Cdrom:
    return types.Cdrom(file=types.File(id=disk_id))


def test_a_cd_is_in_for_now_or_from_the_next_start(sdk: Connection, engine: Engine) -> None:
    vm = sdk.system_service().vms_service().vm_service("db1")
    (only,) = vm.cdroms_service().list()
    assert only.file is None
    drive = vm.cdroms_service().cdrom_service(only.id)
    assert drive.update(cdrom("disk1"), current=True).file.id == "disk1"
    assert (drive.get(current=True).file.id, drive.get().file) == ("disk1", None)
    drive.update(cdrom("disk2"))
    assert (drive.get(current=True).file.id, drive.get().file.id) == ("disk1", "disk2")
    drive.update(cdrom(""), current=True)
    assert drive.get(current=True).file is None
    vm.stop()
    engine.advance(30)
    assert drive.get(current=True).file.id == "disk2"
    with pytest.raises(Error, match="Cannot Change CD VM because the VM is in Down status"):
        drive.update(cdrom("disk1"), current=True)
    with pytest.raises(Error, match="Invalid ISO image path"):
        drive.update(cdrom("none"))
    assert [code for code in codes(engine) if code in (35, 38, 528)] == [38, 35, 528]


def test_consoles_come_and_go_and_report_where_they_are(sdk: Connection, engine: Engine) -> None:
    vm = sdk.system_service().vms_service().vm_service("web1")
    consoles = vm.graphics_consoles_service()
    assert [one.protocol.value for one in consoles.list()] == ["vnc"]
    spice = consoles.add(types.GraphicsConsole(protocol=types.GraphicsType.SPICE))
    assert (spice.id, spice.address) == ("7370696365", None)
    service = consoles.console_service(spice.id)
    assert service.get(current=True).address == "10.0.0.0"
    assert service.ticket().value == "spice-ticket"
    service.remove()
    with pytest.raises(NotFoundError):
        service.get()
    assert codes(engine) == [164]
