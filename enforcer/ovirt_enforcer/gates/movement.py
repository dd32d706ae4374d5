"""What is on its way: our own migrations, and those that the engine or a person makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.store.intents import Intent


@dataclass(frozen=True, slots=True)
class Movement:
    """A VM on its way to a host."""

    vm: str
    cluster: str
    #: None for a start.
    source: str | None
    #: None where it is not known: of others' migrations the REST API does not show it.
    targets: tuple[str, ...]
    #: Whether the enforcer asked for it.
    ours: bool
    #: Whether it is only expected, after a decision that the engine has not shown yet.
    expected: bool = False

    @property
    def migrates(self) -> bool:
        """Whether it leaves a host; a start does not."""
        return self.source is not None


def movements(snapshot: Snapshot, open_intents: Sequence[Intent]) -> tuple[Movement, ...]:
    """All that moves now: every VM once, as ours where it is."""
    own = {intent.vm: intent for intent in open_intents}
    ours = (
        Movement(intent.vm, intent.cluster, intent.source, (intent.target,), ours=True)
        for intent in own.values()
    )
    others = (_of_others(snapshot, vm) for vm in _moving(snapshot) if vm.id not in own)
    return (*ours, *others)


def entering(found: Iterable[Movement], host: str) -> int:
    """How many migrations lead to a host."""
    return sum(host in one.targets for one in found if one.migrates)


def leaving(found: Iterable[Movement], host: str) -> int:
    """How many migrations lead from a host."""
    return sum(one.source == host for one in found)


def _moving(snapshot: Snapshot) -> Iterator[Vm]:
    return (vm for vm in snapshot.vms if vm.status == "migrating" or vm.id in snapshot.pending_hosts)


def _of_others(snapshot: Snapshot, vm: Vm) -> Movement:
    targets = tuple(host for host in snapshot.pending_hosts.get(vm.id, ()) if host != vm.host)
    expected = vm.status != "migrating" and vm.id in snapshot.unconfirmed
    return Movement(vm.id, vm.cluster, vm.host, targets, ours=False, expected=expected)
