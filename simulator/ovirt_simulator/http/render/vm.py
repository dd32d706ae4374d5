"""A VM as the engine shows it, with its disk attachments and NICs."""

from __future__ import annotations

from ovirt_placement.model import Disk, Nic
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, lines, path, text
from ovirt_simulator.http.render import hardware
from ovirt_simulator.http.render.moment import moment
from ovirt_simulator.http.render.root import BLANK_TEMPLATE

#: Statuses without a host, and without all that only a running VM has.
_OFF = frozenset({"down", "suspended", "image_locked", "image_illegal"})

_ACTIONS = (
    "detach",
    "export",
    "commitsnapshot",
    "clone",
    "reordermacaddresses",
    "logon",
    "maintenance",
    "previewsnapshot",
    "ticket",
    "thawfilesystems",
    "undosnapshot",
    "freezefilesystems",
    "cancelmigration",
    "reboot",
    "migrate",
    "shutdown",
    "start",
    "stop",
    "suspend",
)

#: Sub-collections, and what `follow` calls them.
LINKS = {
    "applications": "applications",
    "cdroms": "cdroms",
    "diskattachments": "disk_attachments",
    "watchdogs": "watchdogs",
    "graphicsconsoles": "graphics_consoles",
    "hostdevices": "host_devices",
    "mediateddevices": "mediated_devices",
    "nics": "nics",
    "numanodes": "numa_nodes",
    "sessions": "sessions",
    "reporteddevices": "reported_devices",
    "snapshots": "snapshots",
    "backups": "backups",
    "checkpoints": "checkpoints",
    "affinitylabels": "affinity_labels",
    "katelloerrata": "katello_errata",
    "permissions": "permissions",
    "tags": "tags",
    "statistics": "statistics",
}

NIC_LINKS = {
    "reporteddevices": "reported_devices",
    "networkfilterparameters": "network_filter_parameters",
    "statistics": "statistics",
}

#: What an engine shows of every VM, and nothing here depends on.
_BIOS = "<bios><boot_menu><enabled>false</enabled></boot_menu><type>q35_sea_bios</type></bios>"
_MIGRATION = (
    "<migration><auto_converge>inherit</auto_converge><compressed>inherit</compressed>"
    "<encrypted>inherit</encrypted></migration>\n<migration_downtime>-1</migration_downtime>\n"
    "<multi_queues_enabled>true</multi_queues_enabled>"
)
_OS = "<os><boot><devices><device>hd</device></devices></boot><type>other</type></os>"
_BEHAVIOUR = (
    '<sso><methods><method id="guest_agent"/></methods></sso>\n<start_paused>false</start_paused>\n'
    "<stateless>false</stateless>\n"
    "<storage_error_resume_behaviour>auto_resume</storage_error_resume_behaviour>\n"
    "<time_zone><name>Etc/GMT</name></time_zone>\n<type>server</type>\n<usb><enabled>false</enabled></usb>"
)
_DEVICES = "<console><enabled>false</enabled></console>\n<soundcard_enabled>true</soundcard_enabled>"


def vm(record: Vm, links: Links, *, address: str | None, restricted: bool, all_content: bool) -> str:
    """Render a VM.

    `address` is that of the host it runs on. A `restricted` reader, one whose queries are filtered, sees
    neither the host nor the placement policy. With `all_content` some devices are reported.
    """
    on = record.status not in _OFF
    host = record.host if on and not restricted else None
    return links.entity(
        "vm",
        record.id,
        links.actions(*_ACTIONS),
        text("name", record.name),
        text("description", record.description),
        text("comment", ""),
        links.links(LINKS),
        _configuration(record, address if on else None),
        _DEVICES if all_content else "",
        "" if restricted else _placement_policy(record),
        _BEHAVIOUR,
        links.reference("cluster", "clusters", record.cluster),
        links.reference("cpu_profile", "cpuprofiles", record.cpu_profile),
        "" if record.quota is None else f'<quota id="{attribute(record.quota)}"/>',
        text("next_run_configuration_exists", False),
        text("numa_tune_mode", "interleave"),
        text("run_once", False) if on else "",
        text("start_time", moment(record.started)) if on else "",
        text("status", record.status),
        text("status_detail", record.status_detail),
        text("stop_reason", record.stop_reason),
        text("stop_time", moment(record.stopped)),
        links.reference("host", "hosts", host),
        links.reference("instance_type", "instancetypes", record.instance_type),
        _original_template(record),
        links.reference("template", "templates", record.template or BLANK_TEMPLATE),
    )


def outline(vm_id: str, links: Links, *, name: str | None = None) -> str:
    """Render a VM as actions and member lists mention it: what one can do with it, and its parts."""
    return links.entity("vm", vm_id, links.actions(*_ACTIONS), text("name", name), links.links(LINKS))


def _original_template(record: Vm) -> str:
    template = record.template or BLANK_TEMPLATE
    return f'<original_template href="{path("templates", template)}" id="{attribute(template)}"/>'


def _configuration(record: Vm, address: str | None) -> str:
    """Render hardware, and what concerns migrations."""
    return lines(
        "<auto_pinning_policy>disabled</auto_pinning_policy>",
        _BIOS,
        hardware.cpu(record),
        text("cpu_pinning_policy", record.cpu_pinning),
        text("cpu_shares", 0),
        text("creation_time", moment(record.created)),
        _custom_properties(record.custom_properties),
        text("delete_protected", False),
        hardware.display(record, address),
        element("high_availability", text("enabled", record.ha), text("priority", record.ha_priority)),
        element("io", text("threads", record.io_threads)),
        hardware.memory(record),
        _MIGRATION,
        text("origin", "managed_hosted_engine" if record.hosted_engine else "ovirt"),
        _OS,
    )


def _custom_properties(properties: dict[str, str]) -> str:
    if not properties:
        return ""
    items = (
        element("custom_property", text("name", name), text("value", value))
        for name, value in properties.items()
    )
    return element("custom_properties", *items)


def _placement_policy(record: Vm) -> str:
    hosts = [f'<host href="{path("hosts", host)}" id="{attribute(host)}"/>' for host in record.pinned_hosts]
    return element(
        "placement_policy",
        text("affinity", record.affinity),
        element("hosts", *hosts) if hosts else "",
    )


def disk_attachment(record: Vm, disk: Disk, links: Links) -> str:
    return links.entity(
        "disk_attachment",
        disk.id,
        text("active", True),
        text("bootable", disk.bootable),
        text("interface", "virtio_scsi"),
        text("read_only", False),
        links.reference("disk", "disks", disk.id),
        links.reference("vm", "vms", record.id),
    )


def disk(record: Disk, links: Links) -> str:
    return links.entity(
        "disk",
        record.id,
        text("name", record.id),
        text("status", "ok"),
        links.reference("disk_profile", "diskprofiles", record.profile),
    )


def nic(record: Vm, card: Nic, links: Links) -> str:
    return links.entity(
        "nic",
        card.id,
        text("name", card.name),
        links.links(NIC_LINKS),
        links.reference("vm", "vms", record.id),
        text("interface", "virtio"),
        text("linked", True),
        text("plugged", True),
        links.reference("vnic_profile", "vnicprofiles", card.vnic_profile),
    )
