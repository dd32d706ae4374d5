"""The memory of a VM's video device, by what the REST API says of its display and operating system.

Source: the engine's VideoDeviceSettings, VgamemVideoSettings, VmDeviceCommonUtils and osinfo-defaults.
"""

from __future__ import annotations

from collections.abc import Mapping

#: MiB of a plain device; of a QXL one for itself, for each head, and for what a system does not multiply.
PLAIN_MB = 16
_QXL_MB, _HEAD_MB, _SINGLE_MB = 64, 16, 8
_LINUX = ("other_linux", "rhel", "rhcos", "sles", "ubuntu", "debian")
_OF_OTHER_PROCESSORS = ("ppc64", "s390x")
_WIDE_WINDOWS = {"windows_10", "windows_10x64", "windows_11"}


def video_mb(display: Mapping[str, str], system: str, present: int) -> int:
    """Give the video memory in MiB by what a client said, by paths; the present one if it said nothing."""
    kind = display.get("display/video_type")
    if kind is None:
        return present
    if kind != "qxl":
        return PLAIN_MB
    linux = system.startswith(_LINUX)
    heads = int(display.get("display/monitors", 1)) if linux else 1
    own = _multiplier(system, linux=linux) * _HEAD_MB * heads
    return _QXL_MB * heads + (own or _SINGLE_MB)


def video_type(memory_mb: int) -> str | None:
    """Give the type of a device with so much memory, as the REST API calls it; None for no device."""
    if memory_mb >= _QXL_MB + _SINGLE_MB:
        return "qxl"
    return "vga" if memory_mb else None


def _multiplier(system: str, *, linux: bool) -> int:
    if linux and not system.endswith(_OF_OTHER_PROCESSORS):
        return 2
    return 4 if system in _WIDE_WINDOWS else 0
