"""How much video memory the engine counts for a VM, by what it shows of its display.

Source: VideoDeviceSettings, VgamemVideoSettings, and packaging/conf/osinfo-defaults.properties.
"""

from __future__ import annotations

from ovirt_placement.engine.parsing import xml

#: MiB of one monitor; and of the guest's own share where its system does not multiply that.
_BASE_MB = 16
_OTHER_MB = 8
#: What QXL takes besides the guest's share, in bases.
_QXL_BASES = 4
#: How often the guest's share has the base, by the system.
_LINUX_SHARE = 2
_WINDOWS_SHARES = dict.fromkeys(("windows_10", "windows_10x64", "windows_11"), 4)
_LINUX = ("other_linux", "rhel", "rhcos", "sles", "ubuntu", "debian")
_OTHER_PROCESSORS = ("ppc64", "s390x")


def video_mb(display: xml.Element | None, system: xml.Element | None, *, hosted_engine: bool) -> int:
    """Video memory in MiB, by `<display>` and `<os>`; that of VGA where no type of device is shown.

    So it is for a headless VM: it has no device, and the engine counts one nevertheless.

    A Linux guest with QXL has one device for all monitors; the other guests, and the hosted engine's, have
    one for each, of which the engine counts one.
    """
    shown = xml.children(display, "monitors", "video_type")
    kind = xml.text(shown.get("video_type"))
    if kind != "qxl":
        return _BASE_MB
    guest = xml.text(xml.children(system, "type").get("type"))
    linux = guest.startswith(_LINUX)
    heads = xml.number(shown.get("monitors"), 1) if linux and not hosted_engine else 1
    plain = guest.endswith(_OTHER_PROCESSORS)
    times = _LINUX_SHARE if linux and not plain else _WINDOWS_SHARES.get(guest, 0)
    base = _BASE_MB * heads
    return _QXL_BASES * base + (times * base or _OTHER_MB)
