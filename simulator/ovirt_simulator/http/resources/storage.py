"""Disks, which have no content, and the storage domains that they are on."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from werkzeug import Response

from ovirt_placement.model import Disk
from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.images import DiskEdit
from ovirt_simulator.core.storage_domain import StorageDomain
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import storage as render
from ovirt_simulator.http.resources.actions import act, done
from ovirt_simulator.http.resources.find import images, named, present
from ovirt_simulator.http.resources.searching import known, searched
from ovirt_simulator.http.search.records import AttachedDisk
from ovirt_simulator.http.users import Permit

_FORMATS = ("cow", "raw")


def list_disks(call: Call) -> list[str]:
    return [
        _render(call, one.id, call.links("disks", one.id)) for one in searched(call, "DISK", _disks(call))
    ]


def get_disk(call: Call, disk_id: str) -> str:
    return _render(call, disk_id, call.links("disks", disk_id))


def get_disk_of_domain(call: Call, domain_id: str, disk_id: str) -> str:
    present(next((one for one in _disks_of_domain(call, domain_id) if one.id == disk_id), None))
    return get_disk(call, disk_id)


def post_disk(call: Call) -> Response:
    """Add a disk of this size, on the storage domain that is named by id or name."""
    body = call.body("disk")
    missing = [tag for tag in ("provisioned_size", "format") if not body.text(tag)]
    if missing:
        raise incomplete("Disk", *missing)
    edit = new_disk(call, body)
    call.need(Permit.CREATE_DISK)
    disk = call.engine.disks.add(edit, caller=call.caller)
    return answers.document(_render(call, disk.id, call.plain_links("disks", disk.id)), 201)


def put_disk(call: Call, disk_id: str) -> Response:
    present(call.queries.disk(disk_id))
    body = call.body("disk")
    call.need(Permit.EDIT_DISK_PROPERTIES)
    call.engine.disks.edit(disk_id, disk_edit(body), caller=call.caller)
    return answers.document(_render(call, disk_id, call.plain_links("disks", disk_id)))


def delete_disk(call: Call, disk_id: str, **_: str) -> Response:
    present(call.queries.disk(disk_id))
    call.need(Permit.DELETE_DISK)
    call.engine.disks.remove(disk_id, caller=call.caller)
    return done()


def copy(call: Call, disk_id: str, **_: str) -> Response:
    return _to_domain(call, disk_id, _copy)


def move(call: Call, disk_id: str, **_: str) -> Response:
    return _to_domain(call, disk_id, _move)


def _to_domain(call: Call, disk_id: str, command: Callable[[Call, str, str, Body], Job]) -> Response:
    """Take a disk to the storage domain that the action names by id or name."""

    def carried_out(body: Body) -> Job:
        domain = body.child("storage_domain")
        if domain is None or (domain.id is None and not domain.text("name")):
            raise incomplete("Action", "storageDomain.id|name", verb=command.__name__.strip("_"))
        present(call.queries.disk(disk_id))
        return command(call, disk_id, named(domain, known(call).storage), body)

    subject = render.disk_outline(disk_id, call.plain_links("disks", disk_id))
    return act(call, Permit.EDIT_DISK_PROPERTIES, "disk", subject, carried_out)


def _copy(call: Call, disk_id: str, domain_id: str, body: Body) -> Job:
    wanted = body.child("disk")
    name = None if wanted is None else wanted.text("name") or wanted.text("alias")
    return call.engine.disk_moves.copy(disk_id, domain_id, name=name, caller=call.caller)


def _move(call: Call, disk_id: str, domain_id: str, _: Body) -> Job:
    return call.engine.disk_moves.move(disk_id, domain_id, caller=call.caller)


def new_disk(call: Call, body: Body) -> DiskEdit:
    """Read a disk that is new; the first of the storage domains counts, all of which must be there."""
    listed = body.child("storage_domains")
    references = [] if listed is None else listed.children("storage_domain")
    domains = tuple(_domain(call, named(one, known(call).storage)).id for one in references)
    return replace(disk_edit(body), domains=domains[:1] or None)


def disk_edit(body: Body) -> DiskEdit:
    """Read a disk; its alias stands before its name."""
    word = body.text("format")
    if word is not None and word not in _FORMATS:
        raise fault(400, f"'{word}' is not a member of DiskFormat", "Invalid Enum value")
    return DiskEdit(
        name=body.text("alias") or body.text("name"),
        description=body.text("description"),
        size=body.integer("provisioned_size"),
        format=word,
        sparse=body.boolean("sparse"),
        profile=body.child_id("disk_profile"),
        shareable=body.boolean("shareable"),
        wipe_after_delete=body.boolean("wipe_after_delete"),
    )


def list_disks_of_domain(call: Call, domain_id: str, **_: str) -> list[str]:
    found = _disks_of_domain(call, domain_id)
    return [_render(call, one.id, call.links("disks", one.id)) for one in found]


def _disks_of_domain(call: Call, domain_id: str) -> list[AttachedDisk]:
    domain = _domain(call, domain_id)
    return [one for one in _disks(call) if domain in known(call).storage_of_disk(one)]


def _render(call: Call, disk_id: str, links: Links) -> str:
    image = present(images(call).get(disk_id))
    attached = call.once("attached disks", lambda: {one.id: one for one in _disks(call)}).get(disk_id)
    if attached is None:
        attached = AttachedDisk(Disk(id=disk_id, bootable=False), (), image)
    profile = attached.disk.profile or image.profile
    return render.disk(image, links, profile=profile, domains=known(call).storage_of_disk(attached))


def _disks(call: Call) -> list[AttachedDisk]:
    return known(call).disks


def _domain(call: Call, domain_id: str) -> StorageDomain:
    return present(next((one for one in known(call).storage if one.id == domain_id), None))
