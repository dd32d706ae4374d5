"""What must never be: watched in the simulated engine's core, and in the records of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ovirt_simulator.core.commands.migrations import Migration
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Job, Vm
from ovirt_simulator.core.rejections import Rejected
from tests.builders import CLUSTER
from tests.enforcer.safety.rules import HardRule, hard_rules

#: The host of each VM that runs, on a migration the one that it goes to.
Placement = Mapping[str, str]


def is_violated(rules: Sequence[HardRule], placement: Placement) -> bool:
    places = {vm: (host,) for vm, host in placement.items()}
    return any(rule.violated(places) for rule in rules)


def fewest_migrations(
    rules: Sequence[HardRule], placement: Placement, hosts: Collection[str], fixed: Collection[str]
) -> int | None:
    """How many migrations repair all rules at the least; None if nothing does.

    Hosts have room for every VM, so that no migration is needed but those of VMs which end elsewhere.
    """
    ruled = sorted({vm for rule in rules for vm in rule.vms} & placement.keys() - set(fixed))
    costs = (
        sum(placement[vm] != host for vm, host in zip(ruled, ends, strict=True))
        for ends in product(sorted(hosts), repeat=len(ruled))
        if not is_violated(rules, {**placement, **dict(zip(ruled, ends, strict=True))})
    )
    return min(costs, default=None)


@dataclass
class Begun:
    """A migration that the engine began for the enforcer, and how it ended, once it has."""

    vm: str
    source: str
    target: str
    request: str
    arrived: bool | None = None


class Recorder:
    """What the engine was asked for and did; `faults` are sentences on what of it was wrong."""

    def __init__(self, engine: Engine, fixed: Collection[str]) -> None:
        """`fixed`: the VMs that nobody can migrate."""
        self.faults: list[str] = []
        self.begun: list[Begun] = []
        self._backend = engine._backend
        self._state = engine._backend.state
        self._migrations = engine.vms._migrations
        self._fixed = fixed
        self._under_way: dict[str, Begun] = {}
        self._attach(engine)

    @property
    def repaired(self) -> bool:
        """Whether every hard rule is satisfied, and nothing is on its way."""
        with self._backend.lock:
            moving = any(self._migrations.get(vm) is not None for vm in self._state.vms)
            return not moving and not is_violated(self._rules(), self._intended())

    def _attach(self, engine: Engine) -> None:
        """Be reported by the core's own methods, all but `migrate` under its lock."""
        core: Any = (self._migrations, self._state, engine.vms)
        begin, forget, put_vm, migrate = (
            self._migrations.begin,
            self._migrations.forget,
            self._state.put_vm,
            engine.vms.migrate,
        )

        def on_begin(migration: Migration) -> None:
            before = self._intended()
            begin(migration)
            if migration.caller.correlation_id is not None:
                self._begins(migration, before)

        def on_forget(migration: Migration, job_status: str) -> None:
            forget(migration, job_status)
            if ended := self._under_way.pop(migration.vm_id, None):
                ended.arrived = self._state.vms[ended.vm].host == ended.target

        def on_put_vm(vm: Vm) -> None:
            violated = self._violated()
            before = self._state.vms.get(vm.id)
            put_vm(vm)
            if before is not None and vm.host is not None and vm.host != before.host:
                self._arrives(vm, violated)

        def on_migrate(vm_id: str, **words: Any) -> Job:
            with self._backend.lock:
                moves = self._migrations.get(vm_id) is not None
            try:
                return migrate(vm_id, **words)
            except Rejected:
                asked = "while it is on its way" if moves else f"to go to {words.get('host_id')}, and refused"
                self.faults.append(f"{vm_id} is asked {asked}")
                raise

        core[0].begin, core[0].forget, core[1].put_vm = on_begin, on_forget, on_put_vm
        core[2].migrate = on_migrate

    def _begins(self, migration: Migration, before: dict[str, str]) -> None:
        vm, source, target = migration.vm_id, migration.source, migration.target
        begun = Begun(vm, source, target, migration.caller.correlation_id or "")
        self._under_way[vm] = begun
        self.begun.append(begun)
        left, then = self._left(before), self._left({**before, vm: target})
        if left is None or then != left - 1:
            self.faults.append(
                f"{vm} goes to {target}: {left} migrations were left to do, and {then} are then"
            )

    def _arrives(self, vm: Vm, violated: frozenset[HardRule]) -> None:
        """A group that the engine moves at once arrives VM by VM, and is together again with the last one."""
        begun = self._under_way.get(vm.id)
        if begun is None:
            return
        at_once = {one.vm for one in self.begun if one.request == begun.request}
        for rule in self._violated() - violated:
            if vm.id in rule.vms and not (rule.kind == "together" and rule.vms <= at_once):
                self.faults.append(
                    f"{vm.id} arrives on {vm.host}, which violates {sorted(rule.vms)} {rule.kind}"
                )

    def _left(self, placement: dict[str, str]) -> int | None:
        hosts = [host.id for host in self._state.hosts.values() if host.up]
        return fewest_migrations(self._rules(), placement, hosts, self._fixed)

    def _rules(self) -> tuple[HardRule, ...]:
        return hard_rules(self._state, CLUSTER)

    def _violated(self) -> frozenset[HardRule]:
        places = {vm.id: (vm.host,) for vm in self._state.vms.values() if vm.host is not None}
        return frozenset(rule for rule in self._rules() if rule.violated(places))

    def _intended(self) -> dict[str, str]:
        """Where VMs are, or go."""
        known = {vm.id: vm.migrating_to or vm.host for vm in self._state.vms.values()}
        return {vm: host for vm, host in known.items() if host is not None}


_OPEN = {"prepared", "accepted", "unknown"}
_QUERY = "SELECT vm, target, correlation_id, state, error FROM intents"


class Record(NamedTuple):
    vm: str
    target: str
    correlation_id: str
    state: str
    error: str | None


def records(store: Path) -> list[Record]:
    """All records; none while there is no store, or no table in it."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file,
    ):
        return [Record(*row) for row in file.execute(_QUERY)]
    return []


def settled(store: Path) -> bool:
    """Whether the end of every migration is recorded."""
    return not any(record.state in _OPEN for record in records(store))


def faults(store: Path, begun: Iterable[Begun]) -> Iterator[str]:
    """Compare what the engine did with what the store holds, either way."""
    found = records(store)
    for record in found:
        if record.state in _OPEN:
            yield f"open at the end: {record}"
    known = list(begun)
    for one in known:
        state = "done" if one.arrived else "failed"
        if not any(_is_of(record, one) and record.state == state for record in found):
            yield f"no record says {state} of {one}: {found}"
    for record in found:
        if record.state == "done" and not any(one.arrived and _is_of(record, one) for one in known):
            yield f"recorded, and never was: {record}"


def _is_of(record: Record, begun: Begun) -> bool:
    """The VMs of a group that is moved at once have numbers at the end of the request's id."""
    asked = record.correlation_id == begun.request or record.correlation_id.startswith(f"{begun.request}-")
    return asked and (record.vm, record.target) == (begun.vm, begun.target)
