"""What this process knows of expected placements, by the folder that they are left in."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from ovirt_placement.config import Config
from ovirt_placement.inventory.expected import places
from ovirt_placement.inventory.expected.overlay import ExpectedOverlay
from ovirt_placement.inventory.expected.ranks import packed
from ovirt_placement.inventory.expected.traces import Outcomes, Trace, Traces
from ovirt_placement.inventory.published.publication import now
from ovirt_placement.model import Snapshot, Vm

#: A filter that leaves more hosts than this has not decided much: the weights have more to say.
_FEW_HOSTS = 8


class _Process:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.overlays: dict[tuple[Path, float], ExpectedOverlay] = {}


_process = _Process()


def _forked() -> None:
    global _process
    _process = _Process()


os.register_at_fork(after_in_child=_forked)


def forget(config: Config) -> None:
    """Let go of the journal of an engine that is not asked for any more."""
    folder, longest = places.find(config), config.inventory.expected_seconds
    with _process.lock:
        if folder is not None:
            _process.overlays.pop((folder, longest), None)


def close() -> None:
    """Let go of all journals."""
    with _process.lock:
        _process.overlays.clear()


def over(base: Snapshot, as_of: float, config: Config, asked: str | None = None) -> Snapshot:
    """Return the snapshot, which was true at the moment `as_of`, with expected placements as `pending`.

    `asked` is the VM that is being decided about, if any.
    """
    overlay = _overlay(config)
    return base if overlay is None else overlay.over(base, as_of, now(), asked)


def judge(base: Snapshot, as_of: float, config: Config) -> None:
    """Look at what was decided, and at what became of it, in a snapshot that was true at a moment."""
    if (overlay := _overlay(config)) is not None:
        overlay.judge(base, as_of, now())


def leave_ranks(
    unit: str, vm: Vm, hosts: tuple[str, ...], ranks: Sequence[int], factor: int, config: Config
) -> None:
    """Leave behind the ranks that a weight found for some hosts: one of them will be chosen."""
    _leave(unit, vm, hosts, packed(ranks), factor, config)


def leave_accepted(unit: str, vm: Vm, hosts: Sequence[str], config: Config) -> None:
    """Leave behind which hosts a filter left, if they are few: of one host, nobody asks for weights.

    That it left none counts, too: another filter may have left one.
    """
    if len(hosts) <= _FEW_HOSTS:
        _leave(unit, vm, tuple(hosts), b"", 0, config)


def unsure(vms: Collection[str], config: Config) -> set[str]:
    """Those of the VMs that are expected on a host which the engine need not have chosen."""
    overlay = _overlay(config)
    return set() if overlay is None else overlay.unsure(vms)


def correct(vm: Vm, host: str | None, config: Config) -> None:
    """Expect a VM no more where it is expected, but on another host, if one is given."""
    if (overlay := _overlay(config)) is not None:
        overlay.correct(vm, host, now())


def heard(vm: str, host: str | None, before: float, config: Config) -> None:
    """An event reports on which host a VM starts, or that it does not, after a decision."""
    if (overlay := _overlay(config)) is not None:
        overlay.heard(vm, host, before, now())


def outcomes(config: Config) -> Outcomes:
    """How often the expected host was the real one, of the latest decisions on this machine."""
    folder = places.find(config)
    return Outcomes(0, 0, 0) if folder is None else Traces(folder).outcomes()


def _leave(unit: str, vm: Vm, hosts: tuple[str, ...], ranks: bytes, factor: int, config: Config) -> None:
    if (overlay := _overlay(config)) is not None:
        overlay.leave(vm.id, Trace(unit, now(), vm.host, hosts, ranks, factor))


def _overlay(config: Config) -> ExpectedOverlay | None:
    folder, longest = places.find(config), config.inventory.expected_seconds
    if folder is None:
        return None
    with _process.lock:
        overlay = _process.overlays.get((folder, longest))
        if overlay is None:
            overlay = _process.overlays[folder, longest] = ExpectedOverlay(Traces(folder), longest)
        return overlay
