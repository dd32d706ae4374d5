"""A VM as the engine shows it, with its disk attachments and NICs."""

from __future__ import annotations

from ovirt_simulator.core.devices import Attachment, Nic
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.images import BLANK_TEMPLATE
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import attribute, element, lines, path, text
from ovirt_simulator.http.render import hardware
from ovirt_simulator.http.render.moment import moment
from ovirt_simulator.http.render.particulars import Usual

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

#: What stands inside of each element if nobody has said anything of it.
_USUAL = Usual(
    {
        "bios": "<boot_menu><enabled>false</enabled></boot_menu><type>q35_sea_bios</type>",
        "cpu_shares": "0",
        "migration": "<auto_converge>inherit</auto_converge><compressed>inherit</compressed>"
        "<encrypted>inherit</encrypted>",
        "migration_downtime": "-1",
        "multi_queues_enabled": "true",
        "numa_tune_mode": "interleave",
        "sso": '<methods><method id="guest_agent"/></methods>',
        "start_paused": "false",
        "stateless": "false",
        "storage_error_resume_behaviour": "auto_resume",
        "time_zone": "<name>Etc/GMT</name>",
        "usb": "<enabled>false</enabled>",
    }
)


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
        text("comment", record.particulars.comment),
        links.links(LINKS),
        configuration(record, address if on else None),
        hardware.devices(record) if all_content else "",
        "" if restricted else placement_policy(record),
        _lease(record),
        behaviour(record),
        links.reference("cluster", "clusters", record.cluster),
        links.reference("cpu_profile", "cpuprofiles", record.cpu_profile),
        "" if record.quota is None else f'<quota id="{attribute(record.quota)}"/>',
        text("next_run_configuration_exists", record.next_run is not None),
        _shown(record, "numa_tune_mode"),
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
        links.reference("vm_pool", "vmpools", record.pool),
    )


def outline(vm_id: str, links: Links, *, name: str | None = None) -> str:
    """Render a VM as actions and member lists mention it: what one can do with it, and its parts."""
    return links.entity("vm", vm_id, links.actions(*_ACTIONS), text("name", name), links.links(LINKS))


def _lease(record: Vm) -> str:
    if not record.particulars.lease:
        return ""
    domain = record.particulars.lease
    reference = f'<storage_domain href="{path("storagedomains", domain)}" id="{attribute(domain)}"/>'
    return element("lease", reference)


def _original_template(record: Vm) -> str:
    template = record.template or BLANK_TEMPLATE
    return f'<original_template href="{path("templates", template)}" id="{attribute(template)}"/>'


def configuration(record: Vm, address: str | None) -> str:
    """Render what VMs and templates have: hardware, and what concerns migrations."""
    return lines(
        "<auto_pinning_policy>disabled</auto_pinning_policy>",
        _shown(record, "bios"),
        hardware.cpu(record),
        text("cpu_pinning_policy", record.cpu_pinning),
        _shown(record, "cpu_shares"),
        text("creation_time", moment(record.created)),
        _shown(record, "custom_compatibility_version", "custom_cpu_model", "custom_emulated_machine"),
        _custom_properties(record.custom_properties),
        text("delete_protected", record.particulars.delete_protected),
        hardware.display(record, address),
        element("high_availability", text("enabled", record.ha), text("priority", record.ha_priority)),
        hardware.initialization(record),
        element("io", text("threads", record.io_threads)),
        hardware.memory(record),
        _shown(record, "migration", "migration_downtime", "multi_queues_enabled"),
        text("origin", "managed_hosted_engine" if record.hosted_engine else "ovirt"),
        hardware.operating_system(record),
    )


def behaviour(record: Vm) -> str:
    """Render what VMs and templates have behind their placement policy."""
    return lines(
        _shown(record, "serial_number", "sso", "start_paused", "stateless", "storage_error_resume_behaviour"),
        _shown(record, "time_zone", "tpm_enabled"),
        text("type", record.particulars.type),
        _shown(record, "usb", "virtio_scsi_multi_queues"),
    )


def _shown(record: Vm, *tags: str) -> str:
    return _USUAL.shown(record.particulars.others, *tags)


def _custom_properties(properties: dict[str, str]) -> str:
    if not properties:
        return ""
    items = (
        element("custom_property", text("name", name), text("value", value))
        for name, value in properties.items()
    )
    return element("custom_properties", *items)


def placement_policy(record: Vm) -> str:
    hosts = [f'<host href="{path("hosts", host)}" id="{attribute(host)}"/>' for host in record.pinned_hosts]
    return element(
        "placement_policy",
        text("affinity", record.affinity),
        element("hosts", *hosts) if hosts else "",
    )


def disk_attachment(record: Vm, disk: Attachment, links: Links) -> str:
    return links.entity(
        "disk_attachment",
        disk.id,
        text("active", disk.active),
        text("bootable", disk.bootable),
        text("interface", disk.interface),
        text("pass_discard", disk.pass_discard),
        text("read_only", disk.read_only),
        text("uses_scsi_reservation", disk.scsi_reservation),
        links.reference("disk", "disks", disk.id),
        links.reference("vm", "vms", record.id),
    )


def nic(record: Vm, card: Nic, links: Links, *, mac: str) -> str:
    return links.entity(
        "nic",
        card.id,
        links.actions("activate", "deactivate"),
        text("name", card.name),
        links.links(NIC_LINKS),
        links.reference("vm", "vms", record.id),
        text("interface", card.interface),
        text("linked", card.linked),
        element("mac", text("address", mac)),
        text("plugged", card.plugged),
        links.reference("vnic_profile", "vnicprofiles", card.vnic_profile),
    )
