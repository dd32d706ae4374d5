"""Templates as the engine shows them, with their disk attachments."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Disk
from ovirt_simulator.core.images import Template
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, path, text
from ovirt_simulator.http.render import vm

#: Sub-collections, and what `follow` calls them.
LINKS = {
    "cdroms": "cdroms",
    "diskattachments": "disk_attachments",
    "watchdogs": "watchdogs",
    "graphicsconsoles": "graphics_consoles",
    "mediateddevices": "mediated_devices",
    "nics": "nics",
    "permissions": "permissions",
    "tags": "tags",
}


def template(record: Template, links: Links) -> str:
    """Render a template: of what VMs of it begin as, all but names and devices."""
    begun = replace(record.vm, created=record.created)
    return links.entity(
        "template",
        record.id,
        links.actions("export"),
        text("name", record.name),
        text("description", record.description),
        text("comment", ""),
        links.links(LINKS),
        vm.configuration(begun, None),
        vm.placement_policy(begun),
        vm.behaviour(begun),
        links.reference("cluster", "clusters", begun.cluster or None),
        links.reference("cpu_profile", "cpuprofiles", begun.cpu_profile),
        text("status", "ok"),
        _version(record),
    )


def disk_attachment(record: Template, disk: Disk, links: Links) -> str:
    return links.entity(
        "disk_attachment",
        disk.id,
        text("active", True),
        text("bootable", disk.bootable),
        text("interface", "virtio_scsi"),
        text("pass_discard", False),
        text("read_only", False),
        text("uses_scsi_reservation", False),
        links.reference("disk", "disks", disk.id),
        links.reference("template", "templates", record.id),
    )


def _version(record: Template) -> str:
    first = record.base or record.id
    base = f'<base_template href="{path("templates", first)}" id="{attribute(first)}"/>'
    return element(
        "version",
        base,
        text("version_name", record.version_name),
        text("version_number", record.version),
    )
