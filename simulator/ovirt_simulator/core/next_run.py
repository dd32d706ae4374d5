"""What a VM that runs takes at once when it is changed, and what it can take only when it starts again.

Source: the engine's UpdateVmCommand, ProcessDownVmCommand, and VmBase: which fields can be edited when.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .entities import Vm
from .event_codes import EventCode, EventType
from .vm_edit import CONFIGURATION

#: Of its particulars, what no VM can take while it runs.
_COLD = ("cores", "cpu_mode", "type", "max_memory_mb", "ballooning", "console", "soundcard")
#: Elements, by the beginnings of their paths, that it can take nevertheless.
_WARM = ("migration", "display/allow_override", "display/disconnect_action")
#: Memory is plugged in pieces of this size.
_PIECE_MB = 256


def configured(vm: Vm, wanted: Vm) -> Vm:
    """Give the VM as it stands, with the configuration of the other one."""
    return replace(vm, next_run=None, **{name: getattr(wanted, name) for name in CONFIGURATION})


def divided(before: Vm, wanted: Vm, *, later: bool) -> Vm:
    """Give the VM with what it takes now; if that is not all, all that is wanted stands in `next_run`.

    `later` keeps for then what could be plugged in now. What is wanted is asked each time: what was kept
    before and is not wanted now is forgotten.
    """
    if before.status == "down" or before.hosted_engine:
        return replace(wanted, next_run=None)
    if _most(before) == _most(wanted):
        most = before.particulars.max_memory_mb
        wanted = replace(wanted, particulars=replace(wanted.particulars, max_memory_mb=most))
    now = _taken(before, wanted, hot=before.status == "up" and not later, later=later)
    if before.next_run is None and not _remains(now, wanted, later=later):
        return now
    return replace(now, next_run=replace(wanted, next_run=None))


def _most(vm: Vm) -> int:
    return vm.particulars.max_memory_mb or 4 * vm.memory_mb


def _remains(now: Vm, wanted: Vm, *, later: bool) -> bool:
    """Whether something is to be kept: not so memory that is asked back and was never plugged in."""
    less = now.memory_mb - wanted.memory_mb
    if less > 0 and less % _PIECE_MB == 0 and not later and now.status == "up":
        wanted = replace(wanted, memory_mb=now.memory_mb, guaranteed_mb=now.guaranteed_mb)
    return configured(now, wanted) != now


def _taken(before: Vm, wanted: Vm, *, hot: bool, later: bool) -> Vm:
    particulars = replace(
        wanted.particulars,
        others=_others(before.particulars.others, wanted.particulars.others),
        **{name: getattr(before.particulars, name) for name in _COLD},
    )
    sockets = wanted.sockets if hot else before.sockets
    more = wanted.memory_mb - before.memory_mb if hot else 0
    pluggable = more % _PIECE_MB == 0 and before.plugged_mb + more >= 0
    return replace(
        wanted,
        next_run=None,
        particulars=particulars,
        custom_properties=before.custom_properties,
        threads_per_core=before.threads_per_core,
        io_threads=before.io_threads,
        video_mb=before.video_mb,
        vcpus=sockets * particulars.cores * before.threads_per_core,
        memory_mb=before.memory_mb + (more if pluggable else 0),
        plugged_mb=before.plugged_mb + (more if pluggable else 0),
        guaranteed_mb=before.guaranteed_mb if later or not pluggable else wanted.guaranteed_mb,
    )


def _others(before: Mapping[str, str], wanted: Mapping[str, str]) -> Mapping[str, str]:
    cold = {path: inside for path, inside in before.items() if not path.startswith(_WARM)}
    warm = {path: inside for path, inside in wanted.items() if path.startswith(_WARM)}
    return {**cold, **warm}


def plugged(before: Vm, after: Vm) -> dict[EventType, dict[str, Any]]:
    """Give the events that report what was plugged into a VM that runs, each with its words."""
    reported: dict[EventType, dict[str, Any]] = {}
    if before.status != "up":
        return reported
    if before.vcpus != after.vcpus:
        reported[EventCode.HOT_SET_NUMBER_OF_CPUS] = {"previous": before.vcpus, "now": after.vcpus}
    more = after.memory_mb - before.memory_mb
    if more > 0:
        reported[EventCode.HOT_SET_MEMORY] = {"previous": before.memory_mb, "now": after.memory_mb}
    if more < 0:
        guaranteed = {"previous": before.guaranteed_mb, "now": after.guaranteed_mb}
        reported[EventCode.MEMORY_HOT_UNPLUG_SUCCESSFULLY_REQUESTED] = {"size": -more, **guaranteed}
    return reported
