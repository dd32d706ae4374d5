"""Disks, which have no content, and the storage domains that they are on: one for each data center."""

from __future__ import annotations

from werkzeug import Response

from ovirt_placement.model import Disk
from ovirt_simulator.core.images import DiskEdit
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import fault, incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import storage as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import images, present
from ovirt_simulator.http.resources.searching import known, searched
from ovirt_simulator.http.search.records import AttachedDisk, StorageDomain
from ovirt_simulator.http.users import Permit

_FORMATS = ("cow", "raw")


def list_disks(call: Call) -> list[str]:
    return [
        _render(call, one.id, call.links("disks", one.id)) for one in searched(call, "DISK", _disks(call))
    ]


def get_disk(call: Call, disk_id: str) -> str:
    return _render(call, disk_id, call.links("disks", disk_id))


def get_disk_of_domain(call: Call, domain_id: str, disk_id: str) -> str:
    _domain(call, domain_id)
    return get_disk(call, disk_id)


def post_disk(call: Call) -> Response:
    """Add a disk of this size. A data center has one storage domain, so another that is named is refused."""
    body = call.body("disk")
    missing = [tag for tag in ("provisioned_size", "format") if not body.text(tag)]
    if missing:
        raise incomplete("Disk", *missing)
    _check_domains(call, body)
    call.need(Permit.CREATE_DISK)
    disk = call.engine.disks.add(disk_edit(body), caller=call.caller)
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
    )


def list_storage_domains(call: Call) -> list[str]:
    found = searched(call, "STORAGE", known(call).storage)
    return [render.storage_domain(one, call.links("storagedomains", one.id)) for one in found]


def get_storage_domain(call: Call, domain_id: str) -> str:
    return render.storage_domain(_domain(call, domain_id), call.links("storagedomains", domain_id))


def list_of_data_center(call: Call, data_center_id: str) -> list[str]:
    found = [one for one in known(call).storage if one.data_center == data_center_id]
    return [render.storage_domain(one, call.links("storagedomains", one.id)) for one in found]


def list_disks_of_domain(call: Call, domain_id: str) -> list[str]:
    _domain(call, domain_id)
    found = [
        one for one in _disks(call) if domain_id in {each.id for each in known(call).storage_of_disk(one)}
    ]
    return [_render(call, one.id, call.links("disks", one.id)) for one in found]


def _render(call: Call, disk_id: str, links: Links) -> str:
    image = present(images(call).get(disk_id))
    attached = call.once("attached disks", lambda: {one.id: one for one in _disks(call)}).get(disk_id)
    if attached is None:
        attached = AttachedDisk(Disk(id=disk_id, bootable=False), ())
    profile = attached.disk.profile or image.profile
    domains = known(call).storage_of_disk(attached)
    return render.disk(image, links, profile=profile, domain=domains[0].id if domains else None)


def _disks(call: Call) -> list[AttachedDisk]:
    return known(call).disks


def _domain(call: Call, domain_id: str) -> StorageDomain:
    return present(next((one for one in known(call).storage if one.id == domain_id), None))


def _check_domains(call: Call, body: Body) -> None:
    named = body.child("storage_domains")
    for reference in [] if named is None else named.children("storage_domain"):
        domains = {one.id: one.name for one in known(call).storage}
        if reference.id not in domains and reference.text("name") not in domains.values():
            raise fault(404, f"Entity not found: {reference.id or reference.text('name')}")
