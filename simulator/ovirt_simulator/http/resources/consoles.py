"""The CD-ROM of a VM, and its graphics consoles with tickets that open nothing."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.entities import Vm
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, text
from ovirt_simulator.http.resources.actions import act, done
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.users import Permit

#: The one CD-ROM that every VM has.
_CDROM = "00000000-0000-0000-0000-000000000000"
_PROTOCOLS = ("spice", "vnc")
_PORTS = {"spice": 5900, "vnc": 5901}
_TICKET_SECONDS = 7200


def list_cdroms(call: Call, vm_id: str) -> list[str]:
    return [get_cdrom(call, vm_id, _CDROM)]


def get_cdrom(call: Call, vm_id: str, cdrom_id: str) -> str:
    """Give what is in the CD-ROM at each start, or with `current` now."""
    present(cdrom_id if cdrom_id == _CDROM else None)
    links = call.links("vms", vm_id, "cdroms", _CDROM)
    return _cdrom(visible_vm(call, vm_id), links, now=bool(call.flag("current")))


def put_cdrom(call: Call, vm_id: str, cdrom_id: str) -> Response:
    """Put in the disk that the body names by its id, or take out what is in; `current` says when."""
    visible_vm(call, vm_id)
    present(cdrom_id if cdrom_id == _CDROM else None)
    file = call.body("cdrom").child("file")
    if file is None:
        raise incomplete("Cdrom", "file", verb="update")
    now = bool(call.flag("current"))
    call.need(Permit.CHANGE_VM_CD if now else Permit.EDIT_VM_PROPERTIES)
    call.engine.consoles.change_cd(vm_id, file.id or "", now=now, caller=call.caller)
    links = call.plain_links("vms", vm_id, "cdroms", _CDROM)
    return answers.document(_cdrom(visible_vm(call, vm_id), links, now=now))


def list_consoles(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [_console(call, vm, each) for each in vm.particulars.consoles]


def get_console(call: Call, vm_id: str, console_id: str) -> str:
    vm = visible_vm(call, vm_id)
    return _console(call, vm, _protocol(vm, console_id))


def post_console(call: Call, vm_id: str) -> Response:
    visible_vm(call, vm_id)
    protocol = call.body("graphics_console").text("protocol") or ""
    if protocol not in _PROTOCOLS:
        raise fault(400, f"'{protocol}' is not a member of GraphicsType", "Invalid Enum value")
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.consoles.add(vm_id, protocol)
    return answers.document(_console(call, visible_vm(call, vm_id), protocol), 201)


def delete_console(call: Call, vm_id: str, console_id: str) -> Response:
    protocol = _protocol(visible_vm(call, vm_id), console_id)
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.consoles.remove(vm_id, protocol)
    return done()


def ticket(call: Call, vm_id: str, console_id: str) -> Response:
    """Give a ticket, which is the same each time."""
    protocol = _protocol(visible_vm(call, vm_id), console_id)
    value = element("ticket", text("expiry", _TICKET_SECONDS), text("value", f"{protocol}-ticket"))

    return act(
        call,
        Permit.CONNECT_TO_VM,
        "ticket",
        value,
        lambda _: call.engine.consoles.open(vm_id, caller=call.caller),
    )


def _protocol(vm: Vm, console_id: str) -> str:
    known = {each.encode().hex(): each for each in vm.particulars.consoles}
    return present(known.get(console_id))


def _console(call: Call, vm: Vm, protocol: str) -> str:
    """Render a console; with `current`, of a VM that runs, with where it is."""
    identity = protocol.encode().hex()
    links = call.links("vms", vm.id, "graphicsconsoles", identity)
    host = call.queries.host(vm.host) if vm.host is not None and call.flag("current") else None
    return links.entity(
        "graphics_console",
        identity,
        links.actions("ticket"),
        "" if host is None else text("address", host.address),
        "" if host is None else text("port", _PORTS[protocol]),
        text("protocol", protocol),
        links.reference("vm", "vms", vm.id),
    )


def _cdrom(vm: Vm, links: Links, *, now: bool) -> str:
    disk = vm.cdrom_now if now and vm.cdrom_now is not None else vm.particulars.cdrom
    file = f'<file id="{attribute(disk)}"/>' if disk else ""
    return links.entity("cdrom", _CDROM, file, links.reference("vm", "vms", vm.id))
