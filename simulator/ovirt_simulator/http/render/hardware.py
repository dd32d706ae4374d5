"""What a VM consists of, as the engine shows it: CPU, memory, screen."""

from __future__ import annotations

from ovirt_simulator.core.entities import Vm
from ovirt_simulator.http.markup import element, lines, text

_MIB = 1 << 20
#: From this on, in MiB, a video device is a QXL one.
_QXL_MB = 72
_CONSOLE_RIGHTS = (
    "<allow_override>false</allow_override><copy_paste_enabled>true</copy_paste_enabled>"
    "<disconnect_action>LOCK_SCREEN</disconnect_action><file_transfer_enabled>true</file_transfer_enabled>"
)
_CONSOLE_KIND = "<smartcard_enabled>false</smartcard_enabled><type>vnc</type>"


def cpu(record: Vm) -> str:
    topology = element(
        "topology",
        text("cores", max(1, record.vcpus // (record.sockets * record.threads_per_core))),
        text("sockets", record.sockets),
        text("threads", record.threads_per_core),
    )
    return element("cpu", text("architecture", record.architecture), topology)


def memory(record: Vm) -> str:
    """Render the memory and its policy."""
    policy = element(
        "memory_policy",
        text("ballooning", True),
        text("guaranteed", record.guaranteed_mb * _MIB),
        text("max", 4 * record.memory_mb * _MIB),
    )
    return lines(text("memory", record.memory_mb * _MIB), policy)


def display(record: Vm, address: str | None) -> str:
    """Render how the VM's screen is reached, and its video device; one that has no host has no address."""
    return element(
        "display",
        text("address", address),
        _CONSOLE_RIGHTS,
        text("monitors", 1),
        "" if address is None else text("port", 5900),
        text("single_qxl_pci", False),
        _CONSOLE_KIND,
        text("video_type", _video_type(record.video_mb)),
    )


def _video_type(memory_mb: int) -> str | None:
    """Give the type of a device with so much memory, as the REST API calls it; None for no device.

    Source: the engine's VideoDeviceSettings and VgamemVideoSettings.
    """
    if memory_mb >= _QXL_MB:
        return "qxl"
    return "vga" if memory_mb else None
