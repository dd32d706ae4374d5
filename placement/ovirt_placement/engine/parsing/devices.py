"""What `follow` puts inside of VMs and hosts: tags, disks and network interfaces."""

from __future__ import annotations

from ovirt_placement.engine.parsing import xml
from ovirt_placement.model import Disk, Nic


def tags(element: xml.Element | None) -> tuple[str, ...]:
    """Read the names of tags; absent, there are none."""
    entries = () if element is None else element.iterchildren("tag")
    return tuple(xml.text(xml.children(entry, "name").get("name")) for entry in entries)


def disks(element: xml.Element | None) -> tuple[Disk, ...]:
    """Read disk attachments; the profile is there where the disk itself was followed."""
    found = []
    for entry in () if element is None else element.iterchildren("disk_attachment"):
        fields = xml.children(entry, "bootable", "disk")
        profile = xml.children(fields.get("disk"), "disk_profile").get("disk_profile")
        found.append(
            Disk(
                id=xml.reference(fields.get("disk")) or xml.identity(entry),
                bootable=xml.flag(fields.get("bootable")),
                profile=xml.reference(profile),
            )
        )
    return tuple(found)


def nics(element: xml.Element | None) -> tuple[Nic, ...]:
    found = []
    for entry in () if element is None else element.iterchildren("nic"):
        fields = xml.children(entry, "name", "vnic_profile")
        found.append(
            Nic(
                id=xml.identity(entry),
                name=xml.text(fields.get("name")),
                vnic_profile=xml.reference(fields.get("vnic_profile")),
            )
        )
    return tuple(found)
