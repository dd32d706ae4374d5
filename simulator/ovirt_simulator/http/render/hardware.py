"""What VMs and templates are alike in: CPU, memory, operating system, and what is to be done with them."""

from __future__ import annotations

from ovirt_simulator.core.entities import Vm
from ovirt_simulator.http.markup import element, lines, text
from ovirt_simulator.http.render.particulars import Usual, with_given

_MIB = 1 << 20
_BOOT = "<boot><devices><device>hd</device></devices></boot>"
_NO_DEVICES = Usual({})


def cpu(record: Vm) -> str:
    particulars = record.particulars
    topology = element(
        "topology",
        text("cores", particulars.cores),
        text("sockets", record.sockets),
        text("threads", particulars.threads),
    )
    usual = "<architecture>x86_64</architecture>" + text("mode", particulars.cpu_mode) + topology
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


def operating_system(record: Vm) -> str:
    return with_given(record.particulars.others, "os", _BOOT + text("type", record.particulars.os))


def initialization(record: Vm) -> str:
    """Render what a VM is told of itself when it first starts, if anything."""
    given = record.particulars.initialization
    return f"<initialization>{given}</initialization>" if given else ""


def devices(record: Vm) -> str:
    """Render what only `all_content` shows."""
    console = element("console", text("enabled", record.particulars.console))
    soundcard = text("soundcard_enabled", record.particulars.soundcard)
    return lines(
        console, soundcard, _NO_DEVICES.shown(record.particulars.others, "rng_device", "virtio_scsi")
    )
