"""What a policy unit decides on: fresh if the engine answers at once, else what was known last.

The engine holds a thread for each start until it is scheduled, and waits for us meanwhile. If it has none
left to answer us, waiting would end when one of the two gives up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

from ovirt_placement.config import Config
from ovirt_placement.inventory.client.current import (
    DEFAULT_DEADLINE_SECONDS,
    Awaited,
    Base,
    NoSnapshot,
    configured,
    last_base,
    read_base,
)
from ovirt_placement.inventory.expected import current as expected
from ovirt_placement.inventory.published.publication import now
from ovirt_placement.model import Snapshot, Vm

#: After an answer that did not come in time, the engine is not waited for again so soon.
_LATE_SECONDS = 3.0
_MS = 1000.0


class Decision:
    """The state of the engine that one call of a unit is decided on."""

    def __init__(
        self, base: Base, config: Config, asked: str | None = None, *, awaited: bool = False
    ) -> None:
        """`asked` is the VM that is decided about, if it is one; `awaited`: the engine is asked for it."""
        self.awaited = awaited
        self._base = base
        self._config = config
        self._asked = asked

    @property
    def confirmed(self) -> Snapshot:
        """What the engine has shown, and what the enforcer has begun: filters go by it."""
        return self._base.snapshot

    @cached_property
    def snapshot(self) -> Snapshot:
        """The same with the placements that are expected: weights go by it."""
        return expected.over(self._base.snapshot, self._base.as_of, self._config, self._asked)

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not in it."""
        return max(0.0, now() - self._base.as_of)

    def unsure(self, vms: Collection[str]) -> set[str]:
        """Those of the VMs of which it is not even sure that the engine has chosen the host expected."""
        return expected.unsure(vms, self._config)

    def expect_ranks(
        self, unit: str, vm: Vm, hosts: tuple[str, ...], ranks: Sequence[int], factor: int
    ) -> None:
        """Let later decisions on this machine know which ranks a weight has given to hosts for a VM."""
        expected.leave_ranks(unit, vm, hosts, ranks, factor, self._config)

    def expect_accepted(self, unit: str, vm: Vm, hosts: Sequence[str]) -> None:
        """Let later decisions on this machine know which hosts a filter has left to a VM."""
        expected.leave_accepted(unit, vm, hosts, self._config)

    def correct(self, vm: str, host: str | None) -> None:
        """Take note that a VM is not where it is expected, and where it is, if that is known."""
        expected.correct(self.confirmed.vm_by_id[vm], host, self._config)


class _Process:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: Since when, and of which moment, a fresher state was waited for without success, by directory.
        self.late: dict[Path, tuple[float, float]] = {}


_process = _Process()


def _forked() -> None:
    global _process
    _process = _Process()


os.register_at_fork(after_in_child=_forked)


def decision(asked: str | None = None, *, missing: bool = False, stays: bool = True) -> Decision:
    """Return what is known of the engine, waiting for it no longer than `engine_wait_ms`.

    `asked` is the VM that is decided about, if it is one; if it was `missing` before, the engine is asked for
    it, and a process that stays does not wait for that. A process that knows nothing yet has nothing else to
    go by: it waits up to `burst_wait_ms`, or 10 s if it does not stay.

    Raises `NoSnapshot` if nothing that is known is young enough, `UserError` if the configuration is wrong.
    """
    config, began = configured(), time.monotonic()
    last = last_base(config)
    patience = config.inventory.engine_wait_ms / _MS
    if last is None:
        patience = config.inventory.burst_wait_ms / _MS if stays else DEFAULT_DEADLINE_SECONDS
    unknown = asked if missing else None
    if last is not None and _is_late(config, last) and (unknown is None or unknown in last.snapshot.vm_by_id):
        return Decision(_checked(last, config, None), config, asked)
    try:
        base = read_base(config, None, began + patience, vm=unknown, patient=not stays)
    except Awaited as error:
        return Decision(_checked(last_base(config), config, error), config, asked, awaited=True)
    except NoSnapshot as error:
        base = _checked(last_base(config), config, error)
        _note_late(config, base)
    return Decision(base, config, asked)


def wait_until_shown(vms: Collection[str]) -> Decision:
    """Return what is known when the engine shows where these VMs are, or after `burst_wait_ms`.

    An engine that did not answer in time a moment ago is not waited for.
    """
    config, began = configured(), time.monotonic()
    last = last_base(config)
    if last is not None and _is_late(config, last):
        return Decision(last, config)
    until = began + config.inventory.burst_wait_ms / _MS
    while True:
        try:
            base = read_base(config, 0.0 if last_base(config) is None else _FRESH_SECONDS, until)
        except NoSnapshot as error:
            base = _checked(last_base(config), config, error)
            _note_late(config, base)
            return Decision(base, config)
        found = Decision(base, config)
        if found.snapshot.unconfirmed.isdisjoint(vms) or time.monotonic() >= until:
            return found
        time.sleep(_PAUSE_SECONDS)


#: While a VM is waited for: how old a reading may be, and how long after one the next begins.
_FRESH_SECONDS = 0.02
_PAUSE_SECONDS = 0.02


def _is_late(config: Config, last: Base) -> bool:
    """Whether something fresher than this was waited for without success a moment ago."""
    known = _process.late.get(config.inventory.directory)
    return known is not None and known[0] == last.as_of and time.monotonic() < known[1]


def _note_late(config: Config, last: Base) -> None:
    with _process.lock:
        _process.late[config.inventory.directory] = last.as_of, time.monotonic() + _LATE_SECONDS


def _checked(last: Base | None, config: Config, error: NoSnapshot | None) -> Base:
    """Raises `NoSnapshot` if there is no last state, or if that is too old."""
    if last is None:
        raise error or NoSnapshot("nothing is known of the engine yet")
    age = now() - last.as_of
    if age > config.inventory.longest_age_seconds:
        raise error or NoSnapshot(f"what is known of the engine is {age:.0f} s old")
    return last
