"""What VMs and templates are alike in: CPU, memory, operating system, and what is to be done with them."""

from __future__ import annotations

from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.video import video_type
from ovirt_simulator.http.markup import element, lines, text
from ovirt_simulator.http.render.particulars import Usual, with_given

_MIB = 1 << 20
_BOOT = "<boot><devices><device>hd</device></devices></boot>"
_CONSOLE_RIGHTS = (
    "<allow_override>false</allow_override><copy_paste_enabled>true</copy_paste_enabled>"
    "<disconnect_action>LOCK_SCREEN</disconnect_action><file_transfer_enabled>true</file_transfer_enabled>"
)
_CONSOLE_KIND = "<smartcard_enabled>false</smartcard_enabled><type>vnc</type>"
_NO_DEVICES = Usual({})


def cpu(record: Vm) -> str:
    particulars = record.particulars
    topology = element(
        "topology",
        text("cores", max(1, record.vcpus // (record.sockets * record.threads_per_core))),
        text("sockets", record.sockets),
        text("threads", record.threads_per_core),
    )
    usual = text("architecture", record.architecture) + text("mode", particulars.cpu_mode) + topology
    return with_given(particulars.others, "cpu", usual)


def memory(record: Vm) -> str:
    """Render the memory and its policy."""
    most = record.particulars.max_memory_mb or 4 * record.memory_mb
    policy = element(
        "memory_policy",
        text("ballooning", record.particulars.ballooning),
        text("guaranteed", record.guaranteed_mb * _MIB),
        text("max", most * _MIB),
    )
    return lines(text("memory", record.memory_mb * _MIB), policy)


def display(record: Vm, address: str | None) -> str:
    """Render how the VM's screen is reached, and its video device; one that has no host has no address."""
    usual = (
        text("address", address)
        + _CONSOLE_RIGHTS
        + text("monitors", 1)
        + ("" if address is None else text("port", 5900))
        + text("single_qxl_pci", False)
        + _CONSOLE_KIND
        + text("video_type", video_type(record.video_mb))
    )
    return with_given(record.particulars.others, "display", usual)


def operating_system(record: Vm) -> str:
    return with_given(record.particulars.others, "os", _BOOT + text("type", record.particulars.os))


def initialization(record: Vm) -> str:
    """Render what a VM learns of itself when it first starts, if anything."""
    given = record.particulars.initialization
    return f"<initialization>{given}</initialization>" if given else ""


def devices(record: Vm) -> str:
    """Render what only `all_content` shows."""
    console = element("console", text("enabled", record.particulars.console))
    soundcard = text("soundcard_enabled", record.particulars.soundcard)
    return lines(
        console, soundcard, _NO_DEVICES.shown(record.particulars.others, "rng_device", "virtio_scsi")
    )
