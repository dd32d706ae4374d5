"""Templates as the engine shows them, with their disk attachments."""

from __future__ import annotations

from ovirt_placement.model import Disk
from ovirt_simulator.core.images import Template
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, lines, path, text
from ovirt_simulator.http.render import hardware
from ovirt_simulator.http.render.moment import moment

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
    vm = record.vm
    return links.entity(
        "template",
        record.id,
        links.actions("export"),
        text("name", record.name),
        text("description", record.description),
        text("comment", ""),
        links.links(LINKS),
        lines(
            hardware.cpu(vm),
            text("creation_time", moment(record.created)),
            text("delete_protected", False),
            element("high_availability", text("enabled", vm.ha), "<priority>1</priority>"),
            hardware.initialization(vm),
            hardware.memory(vm),
            text("origin", "ovirt"),
            hardware.operating_system(vm),
            element("placement_policy", text("affinity", vm.affinity)),
            text("type", vm.particulars.type),
        ),
        links.reference("cluster", "clusters", vm.cluster or None),
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
    """Every template here is the first of its versions."""
    base = f'<base_template href="{path("templates", record.id)}" id="{attribute(record.id)}"/>'
    return element("version", base, text("version_name", "base version"), text("version_number", 1))
