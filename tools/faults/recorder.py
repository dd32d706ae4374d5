"""Watches the simulated engine's core, and keeps what must never be: the first three invariants.

No VM is asked for while it is on its way, no migration breaks a hard rule that held, nor is one asked for
that the engine refuses for that reason, and each is a step of the shortest repair. It knows nothing of the
enforcer but that its requests carry a correlation id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Job, Vm
from ovirt_simulator.core.migrations import Migration
from ovirt_simulator.core.rejections import Rejected
from tests.builders import CLUSTER
from tests.enforcer.safety.rules import HardRule, hard_rules
from tools.faults.repairs import fewest_migrations, is_violated


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
