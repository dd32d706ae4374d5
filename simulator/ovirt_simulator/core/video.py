"""The memory of a VM's video device, by what the REST API says of its display, and the other way round.

Source: the engine's VideoDeviceSettings and VgamemVideoSettings, for operating systems that ask for no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: MiB of a plain device, and of a QXL one: for itself, and for each head.
_PLAIN_MB, _QXL_MB, _HEAD_MB = 16, 8, 64


class Video(NamedTuple):
    """The REST API's video_type, None where a VM has no video memory, and how many heads the device has."""

    type: str | None
    heads: int


def video_mb(display: Mapping[str, str], present: int) -> int:
    """Give the video memory in MiB by what a client said, by paths; the present one if it said nothing."""
    kind = display.get("display/video_type")
    if kind is None:
        return present
    if kind != "qxl":
        return _PLAIN_MB
    single = display.get("display/single_qxl_pci") == "true"
    return _QXL_MB + _HEAD_MB * (int(display.get("display/monitors", 1)) if single else 1)


def video(memory_mb: int) -> Video:
    """Give the device that has so much memory, or what comes next to it."""
    if memory_mb < _QXL_MB + _HEAD_MB:
        return Video("vga" if memory_mb else None, 1)
    return Video("qxl", (memory_mb - _QXL_MB) // _HEAD_MB)
