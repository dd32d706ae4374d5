"""Watches the simulated engine's core: each migration that starts or ends, each VM that changes its place.

It knows nothing of the enforcer but that its requests carry a correlation id. What it finds wrong is kept in
`faults`, as sentences with the simulated time. An enforcer that is alone with its engine is judged more
strictly: nobody else excuses what it does.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_simulator.core.commands.migrations import Migration
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Host, Job, Vm
from ovirt_simulator.core.messages import Rejected
from tests.enforcer.safety.oracles import (
    CLOCK_GRAIN_SECONDS,
    Begun,
    HardRule,
    Places,
    fewest_migrations,
    hard_rules,
    passed,
)

#: A lock of the VM is over soon; any other refusal is a matter of the target.
_CONFLICT_PAUSE_SECONDS = 10.0


@dataclass(frozen=True)
class Refused:
    at: float
    tick: int
    pause_seconds: float


class Recorder:
    """What happened, in order, and what of it must not have."""

    def __init__(
        self, engine: Engine, settings: EnforcerSettings, fixed: Collection[str] | None = None
    ) -> None:
        """`fixed` are the VMs that nobody can migrate, where the enforcer alone acts, and hosts have room.

        None of its requests may then be refused, and each migration must be one of the fewest that repair.
        """
        self.faults: list[str] = []
        #: All that the enforcer asked for and the engine began.
        self.ours: list[Begun] = []
        #: VMs of which the answer to the next request gets lost: a refusal stays unknown.
        self.unheard: set[str] = set()
        self._settings = settings
        self._fixed = fixed
        self._backend = engine._backend
        self._state = engine._backend.state
        self._migrations = engine.vms._migrations
        self._tick = 0
        self._reading = 0
        #: When others last changed a cluster.
        self._touched: defaultdict[str, int] = defaultdict(int)
        self.under_way: dict[str, Begun] = {}
        #: The last end of ours for each VM: it arrived so.
        self._arrived: dict[str, Begun] = {}
        self._refused: dict[tuple[str, str | None], Refused] = {}
        self._capacity_mb = {
            host.id: host.free_mb + sum(vm.memory_mb for vm in self._state.vms_on(host.id))
            for host in self._state.hosts.values()
        }
        self._attach(engine)

    @property
    def now(self) -> float:
        return self._backend.elapsed

    @property
    def repaired(self) -> bool:
        """Whether every hard rule is satisfied, and nothing is on its way."""
        with self._backend.lock:
            return not self.under_way and not any(
                rule.violated(self._where(cluster))
                for cluster in self._state.clusters
                for rule in hard_rules(self._state, cluster)
            )

    def read(self) -> None:
        """The enforcer has read the engine: from here on it may know of what happened before."""
        self._reading += 1

    def touch(self, cluster: str) -> None:
        """Others changed something in a cluster."""
        self._tick += 1
        self._touched[cluster] = self._tick

    def _attach(self, engine: Engine) -> None:
        """Be reported by the core's own methods, under its lock."""
        put_vm, put, begin, forget, migrate = (
            self._state.put_vm,
            self._state.put,
            self._migrations.begin,
            self._migrations.forget,
            engine.vms.migrate,
        )

        def on_put_vm(vm: Vm) -> None:
            before, places = self._state.vms.get(vm.id), self._where(vm.cluster)
            put_vm(vm)
            if before is not None:
                self._changed(before, vm, places)

        def on_put(table: dict[str, Any], record: Any) -> None:
            before = table.get(record.id)
            put(table, record)
            if isinstance(before, Host) and before.status != record.status:
                self.touch(record.cluster)

        def on_begin(migration: Migration) -> None:
            places = self._taken(migration.vm_id)
            if self._migrations.get(migration.vm_id) not in (None, migration):
                self._fault(f"{migration.vm_id} migrates twice at once")
            begin(migration)
            self._begins(migration, places)

        def on_forget(migration: Migration, job_status: str, **changes: str) -> None:
            forget(migration, job_status, **changes)
            self._ends(migration, job_status)

        def on_migrate(vm_id: str, **words: Any) -> Job:
            with self._backend.lock:
                return self._asks(vm_id, lambda: migrate(vm_id, **words), **words)

        core: Any = (self._state, self._migrations, engine.vms)
        core[0].put_vm, core[0].put = on_put_vm, on_put
        core[1].begin, core[1].forget = on_begin, on_forget
        core[2].migrate = on_migrate

    # -- what happens

    def _asks(self, vm: str, migrate: Callable[[], Job], **words: Any) -> Job:
        """A request of ours must be no repetition, and stay within the limits."""
        caller, host = words.get("caller"), words.get("host_id")
        if self._fixed is None and (caller is None or caller.correlation_id is None):
            return migrate()
        self._tick += 1
        self._no_repetition(vm, host)
        known = self.under_way.get(vm)
        if known is not None and (known.request is not None or known.reading < self._reading):
            self._fault(f"asked to move {vm}, which is on its way to {known.target}")
        before = [one for one in self.under_way.values() if one.request or one.reading < self._reading]
        count = len(self.ours)
        try:
            job = migrate()
        except Rejected as rejected:
            pause = self._settings.refusal_seconds
            if rejected.http_status == 409:
                pause = _CONFLICT_PAUSE_SECONDS
            if self._fixed is not None and known is None:
                self._fault(f"{vm} is asked to go to {host}, and refused")
            if vm not in self.unheard:
                self._refused[vm, host] = Refused(self.now, self._tick, pause)
            if len(self.ours) > count:  # a group of which a part has begun: that is the engine's failure
                self.touch(self._state.vms[vm].cluster)
            raise
        finally:
            self.unheard.discard(vm)
        self._within_limits(before, self.ours[count:], self.ours[:count])
        return job

    def _begins(self, migration: Migration, places: Places) -> None:
        self._tick += 1
        vm = self._state.vms[migration.vm_id]
        begun = Begun(
            vm=vm.id,
            source=migration.source,
            target=migration.target,
            request=migration.caller.correlation_id,
            at=self.now,
            tick=self._tick,
            reading=self._reading,
        )
        self.under_way[vm.id] = begun
        if begun.request is None:
            self.touch(vm.cluster)
            return
        self.ours.append(begun)
        last = self._arrived.get(vm.id)
        back = last is not None and (last.source, last.target) == (begun.target, begun.source)
        if last is not None and back and self._touched[vm.cluster] < last.tick:
            self._fault(f"{vm.id} goes back to {begun.target}, which it left at {last.at:.0f}")
        self._no_rival_there(begun, places)
        if self._fixed is not None:
            self._one_fewer_left(begun, vm.cluster, self._fixed)

    def _ends(self, migration: Migration, job_status: str) -> None:
        self._tick += 1
        begun = self.under_way.pop(migration.vm_id, None)
        vm = self._state.vms[migration.vm_id]
        if begun is not None:
            begun.ended = self.now
            begun.arrived = job_status == "finished" and vm.host == begun.target
        if begun is not None and begun.request is not None and begun.arrived:
            self._arrived[vm.id] = begun
        else:
            self.touch(vm.cluster)  # by others, or a failure: what was planned may be undone

    def _changed(self, before: Vm, vm: Vm, places: Places) -> None:
        """A VM of ours that arrives breaks nothing; whatever else happens is the doing of others."""
        if (before.host, before.status, before.migrating_to) == (vm.host, vm.status, vm.migrating_to):
            return
        self._tick += 1
        migration = self._migrations.get(vm.id)
        ours = migration is not None and migration.caller.correlation_id is not None
        if not ours:
            self.touch(vm.cluster)
        self._no_host_overfilled(before, vm)
        if ours and before.host != vm.host and vm.host is not None:
            self._nothing_violated(vm, places)

    # -- what must not be

    def _no_repetition(self, vm: str, host: str | None) -> None:
        last = self._refused.get((vm, host))
        if last is None or self._touched[self._state.vms[vm].cluster] > last.tick:
            return
        if self.now + CLOCK_GRAIN_SECONDS < last.at + last.pause_seconds:
            self._fault(f"asked again to move {vm} to {host}, refused at {last.at:.0f}, and nothing changed")

    def _no_rival_there(self, begun: Begun, places: Places) -> None:
        """Before it begins: wherever it may end, no satisfied hard rule may be violated by it.

        Those that others migrate are left out: the engine does not show where they go.
        """
        strangers = {one.vm for one in self.under_way.values() if one.request is None}
        known = {vm: hosts for vm, hosts in places.items() if vm not in strangers}
        after = {**known, begun.vm: {*known.get(begun.vm, ()), begun.target}}
        for rule in self._rules(begun.vm):
            if rule.kind != "together" and rule.violated(after) and not rule.violated(known):
                self._fault(f"{begun.vm} begins to move to {begun.target}, which violates {_reported(rule)}")

    def _nothing_violated(self, vm: Vm, before: Places) -> None:
        begun = self.under_way[vm.id]
        if self._fixed is None and self._touched[vm.cluster] > begun.tick:
            return  # others changed what this was decided on
        moved_at_once = {one.vm for one in self.ours if one.request == begun.request}
        running = self._where(vm.cluster)
        for rule in self._rules(vm.id):
            if not rule.violated(running) or rule.violated(before):
                continue
            if rule.kind == "together" and rule.vms & running.keys() <= moved_at_once:
                continue  # the engine moves them at once, and they arrive one by one
            self._fault(f"{vm.id} has arrived on {vm.host}, which violates {_reported(rule)}")

    def _one_fewer_left(self, begun: Begun, cluster: str, fixed: Collection[str]) -> None:
        rules = hard_rules(self._state, cluster)
        hosts = [host.id for host in self._state.hosts.values() if host.up]
        vms = self._state.vms.values()
        after = {vm.id: host for vm in vms if (host := vm.migrating_to or vm.host) is not None}
        before = {**after, begun.vm: begun.source}
        left, then = (fewest_migrations(rules, placement, hosts, fixed) for placement in (before, after))
        if left is None or then != left - 1:
            self._fault(
                f"{begun.vm} goes to {begun.target}: {left} migrations were left to do, and {then} are then"
            )

    def _no_host_overfilled(self, before: Vm, vm: Vm) -> None:
        taken = {vm.host, vm.migrating_to} - {before.host, before.migrating_to, None}
        for host in taken:
            size = sum(
                one.memory_mb for one in self._state.vms.values() if host in (one.host, one.migrating_to)
            )
            if host is not None and size > self._capacity_mb[host]:
                self._fault(f"{host} has {size} MiB of {self._capacity_mb[host]} with {vm.id}")

    def _within_limits(self, before: Sequence[Begun], new: Sequence[Begun], ever: Sequence[Begun]) -> None:
        if new:
            cluster = self._state.vms[new[0].vm].cluster
            under_way = {
                "engine": len(before),
                "cluster": sum(self._state.vms[one.vm].cluster == cluster for one in before),
                "host out": sum(self._still_on(one, new[0].source) for one in before),
                "host in": sum(one.target == new[0].target for one in before if one.request),
            }
            known = [one for one in ever if self._state.vms[one.vm].cluster == cluster]
            self.faults += passed(self._settings, under_way, known, new, self.now)

    def _still_on(self, begun: Begun, host: str) -> bool:
        """Whether a migration leaves the host; where one came from that is handed over is not reported."""
        ours = begun.request is not None
        return begun.source == host and (ours or self._state.vms[begun.vm].host == host)

    # -- where things are

    def _rules(self, vm: str) -> tuple[HardRule, ...]:
        return tuple(rule for rule in hard_rules(self._state, self._state.vms[vm].cluster) if vm in rule.vms)

    def _where(self, cluster: str) -> dict[str, tuple[str, ...]]:
        vms = self._state.vms.values()
        return {vm.id: (vm.host,) for vm in vms if vm.cluster == cluster and vm.host is not None}

    def _taken(self, vm_id: str) -> dict[str, set[str]]:
        """Where the VMs besides this one are and may come to be, and this one is."""
        cluster = self._state.vms[vm_id].cluster
        return {
            vm.id: {vm.host, vm.migrating_to or vm.host}
            for vm in self._state.vms.values()
            if vm.cluster == cluster and vm.host is not None
        }

    def _fault(self, text: str) -> None:
        self.faults.append(f"{self.now:.1f}: {text}")


def _reported(rule: HardRule) -> str:
    hosts = f" of {', '.join(sorted(rule.hosts))}" if rule.hosts else ""
    return f"{', '.join(sorted(rule.vms))} {rule.kind}{hosts}"
