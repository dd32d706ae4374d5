"""Remembers placement keys: those that people set, those that VMs started with, and sticky copies.

What is written in one call is one transaction, and so is what is decided on the keys that stand. Each writing
gives the keys another revision, so that who has read them once need not do so again; who set a key and when
stays with it, by the database's clock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import eq
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import Row, Text, cast, union

from ovirt_placement.model import FrozenKeys, PlacementKey, PlacementRule, StickyCopy
from ovirt_placement.model.record import CLUSTER, SYSTEM, check_text, figures
from ovirt_placement.store.enforcer.maintenance import draining_hosts
from ovirt_placement.store.placement_rules import read_revision, revise, set_rules
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, now
from ovirt_placement.store.sql.schema import (
    default_keys,
    frozen_keys,
    lost_memberships,
    memberships,
    missing_vms,
    placement_keys,
    sticky_copies,
)
from ovirt_placement.store.user_actions import Act, UserActionKind, record


def by_id(key: PlacementKey) -> str:
    """Which key it is, where no names are known."""
    return f"{key.level} {key.resource}: {key.key_class} key {key.name}"


def changed(
    put: Iterable[PlacementKey], removed: Iterable[PlacementKey], title: Callable[[PlacementKey], str]
) -> Iterator[str]:
    """In words each what was set and removed."""
    for key in put:
        yield f"set {title(key)} to {figures(key.value, key.weight)}"
    yield from (f"removed {title(key)}" for key in removed)


#: Names and values.
_Pairs = tuple[tuple[str, float], ...]

#: What VMs are remembered by.
_OF_VMS = (frozen_keys, sticky_copies, memberships, lost_memberships)


class SetKey(msgspec.Struct, frozen=True):
    """A key with who set it last, and when, in seconds since the epoch."""

    key: PlacementKey
    set_by: str
    set_at: float


class KeyChange(msgspec.Struct, frozen=True):
    """What is to become of the keys that people set: first some go, then others come, all or none."""

    put: tuple[PlacementKey, ...] = ()
    remove: tuple[PlacementKey, ...] = ()


class Run(msgspec.Struct, frozen=True):
    """One run of a VM, from its start to its stop, with what it is to be remembered by."""

    vm: str
    #: When the engine says that it began, in seconds since the epoch; None if it does not say.
    started: float | None
    #: The compiled customer keys, names and values.
    keys: tuple[tuple[str, float], ...]
    #: All copies that the VM has from now on; None leaves them as they are.
    copies: tuple[StickyCopy, ...] | None = None


class KeyRecords(msgspec.Struct, frozen=True):
    """All that the store knows of placement keys, and what is read with them: rules, and draining hosts."""

    revision: int
    #: These are parts of a snapshot.
    placement_keys: tuple[PlacementKey, ...] = ()
    frozen_keys: tuple[FrozenKeys, ...] = ()
    sticky_copies: tuple[StickyCopy, ...] = ()
    placement_rules: tuple[PlacementRule, ...] = ()
    draining_hosts: tuple[str, ...] = ()


class KeyStore(StoreAccess):
    """The placement keys of one engine, in a database."""

    #: Frozen sets by their text, as they were read last: nearly all are the same the next time.
    _sets: Mapping[str, _Pairs] = MappingProxyType({})

    def all_keys(self) -> tuple[SetKey, ...]:
        """List the keys of every level and host, by place."""
        with self._reading() as rows:
            return _set_keys(rows)

    def change(
        self,
        decide: Callable[[tuple[PlacementKey, ...]], KeyChange],
        *,
        set_by: str,
        title: Callable[[PlacementKey], str] = by_id,
    ) -> KeyChange:
        """Make the change that is decided on the keys as they stand, and return it.

        From the decision until it is written no other client changes a key: who decides that all hosts of a
        cluster have one is right about that afterwards. What the decision raises is passed on, and nothing is
        changed then. Raises `UserError` for a key whose name is not legible. A key that is put takes the
        place of one that stands there. One that says the same already stays, with who set it. `title` names
        a key in the record of who did it.
        """
        with self._transaction() as rows:
            revise(rows)
            change = decide(stored_keys(rows))
            fresh, gone = change_keys(rows, change, set_by)
            if details := tuple(changed(fresh, gone, title)):
                record(rows, Act(kind=UserActionKind.KEYS, login=set_by, details=details))
        return change

    def runs(self) -> dict[str, float | None]:
        """Return, for the VMs with a frozen set, when the engine said that this run began."""
        with self._reading() as rows:
            found = rows.execute(rows.select(frozen_keys, frozen_keys.c.vm, frozen_keys.c.started))
            return {run.vm: run.started for run in found}

    def begin_runs(self, runs: Sequence[Run]) -> None:
        """Freeze the keys of VMs that started, in place of those of an earlier run."""
        if not runs:
            return
        with self._leading() as rows:
            revise(rows)
            rows.remove_all(frozen_keys.c.vm, [run.vm for run in runs])
            rows.remove_all(sticky_copies.c.vm, [run.vm for run in runs if run.copies is not None])
            frozen = {"recorded": rows.now()}
            rows.add_all(
                frozen_keys,
                [{**frozen, "vm": run.vm, "started": run.started, "keys": run.keys} for run in runs],
            )
            rows.add_all(
                sticky_copies, [msgspec.structs.asdict(copy) for run in runs for copy in run.copies or ()]
            )

    def end_runs(self, vms: Sequence[str]) -> None:
        """Drop the frozen sets of VMs that stopped; their sticky copies stay."""
        if not vms:
            return
        with self._leading() as rows:
            revise(rows)
            rows.remove_all(frozen_keys.c.vm, vms)

    def remembered_vms(self) -> frozenset[str]:
        """Return the VMs with a record: a frozen set, sticky copies, memberships."""
        with self._reading() as rows:
            with_any = union(*(rows.select(table, table.c.vm) for table in _OF_VMS))
            return frozenset(rows.execute(with_any).scalars())

    def mark_missing(self, vms: Collection[str]) -> dict[str, float]:
        """Remember that these VMs are missing, and no others; for how many seconds each has been by now.

        Nothing is written where the same were missing before: writers wait for each other.
        """
        with self._reading() as rows:
            seconds = (now() - missing_vms.c.since).label("seconds")
            ages = rows.execute(rows.select(missing_vms, missing_vms.c.vm, seconds))
            before = {row.vm: row.seconds for row in ages}
        found = [vm for vm in before if vm not in vms]
        fresh = [vm for vm in vms if vm not in before]
        if found or fresh:
            with self._leading() as rows:
                rows.remove_all(missing_vms.c.vm, found)
                since = rows.now()
                rows.add_all(missing_vms, [{"vm": vm, "since": since} for vm in fresh])
        return {vm: before.get(vm, 0.0) for vm in vms}

    def forget_vms(self, vms: Sequence[str]) -> None:
        """Drop all that VMs are remembered by; the keys that people set on them stay."""
        if not vms:
            return
        with self._leading() as rows:
            revise(rows)
            for table in (*_OF_VMS, missing_vms):
                rows.remove_all(table.c.vm, vms)

    def revision(self) -> int:
        """Return a number that is another after every writing."""
        with self._reading() as rows:
            return read_revision(rows)

    def records(self) -> KeyRecords:
        """Return everything as of one revision, or later: then the next revision shows it."""
        with self._reading() as rows:
            # The revision first: what is written meanwhile is then read again, never overlooked.
            revision = read_revision(rows)
            keys = stored_keys(rows)
            # Unpacked: to take a column by its name takes seven times as long.
            frozen: Sequence[Any] = rows.execute(rows.select(frozen_keys, *_FROZEN)).all()
            self._sets = {text: self._sets.get(text) or _pairs(text) for _, text in frozen}
            copies = rows.select(sticky_copies).order_by(*sticky_copies.primary_key)
            return KeyRecords(
                revision,
                keys,
                tuple(FrozenKeys(vm, self._sets[text]) for vm, text in frozen),
                rows.records(StickyCopy, copies),
                tuple(found.rule for found in set_rules(rows)),
                draining_hosts(rows),
            )

    def default_keys(self) -> DefaultKeys:
        """Return what stands, and what setup gave."""
        with self._transaction() as rows:
            return _default_keys(rows)

    def change_default_keys(self, decide: Callable[[DefaultKeys], DefaultKeyChange], *, set_by: str) -> None:
        """Make the change that is decided on what stands, all of it or nothing."""
        with self._transaction() as rows:
            revise(rows)
            change = decide(_default_keys(rows))
            put = tuple(one.key for one in change.give)
            change_keys(rows, KeyChange(put=put, remove=tuple(one.key for one in change.take)), set_by)
            for gone in (*change.renew, *change.take, *change.leave):
                here = default_keys.c.cluster == gone.cluster, default_keys.c.name == gone.name
                rows.remove(default_keys, *here)
            rows.add_all(default_keys, [msgspec.structs.asdict(one) for one in (*change.give, *change.renew)])


def stored_keys(rows: EngineRows) -> tuple[PlacementKey, ...]:
    """The keys that people set, by place."""
    return tuple(found.key for found in _set_keys(rows))


def change_keys(
    rows: EngineRows, change: KeyChange, set_by: str
) -> tuple[list[PlacementKey], list[PlacementKey]]:
    """Make a change within a transaction that has revised the keys; which came, and which went."""
    placement = {key.place: key for key in stored_keys(rows)}
    for key in change.put:
        check_text(key.name, key.value)
    fresh, gone = [], []
    for key in change.remove:
        if placement.pop(place := key.place, None) is not None:
            rows.remove(placement_keys, *map(eq, _PLACE, place))
            gone.append(key)
    for place, key in {key.place: key for key in change.put}.items():
        before = placement.get(place)
        if before is None or not _same(before, key):
            columns = {column.key: value for column, value in zip(_PLACE, place, strict=True)}
            rows.put(placement_keys, columns, _values(key, set_by))
            fresh.append(key)
    return fresh, gone


_PLACE = (placement_keys.c.level, placement_keys.c.resource, placement_keys.c["class"], placement_keys.c.name)
_FROZEN = (frozen_keys.c.vm, cast(frozen_keys.c["keys"], Text))


def _pairs(text: str) -> _Pairs:
    return tuple((name, value) for name, value in json.loads(text))


def _set_keys(rows: EngineRows) -> tuple[SetKey, ...]:
    return tuple(map(_set_key, rows.execute(rows.select(placement_keys).order_by(*_PLACE))))


def _set_key(row: Row[Any]) -> SetKey:
    fields = {str(column): value for column, value in row._asdict().items()}
    set_by, set_at = fields.pop("set_by"), fields.pop("set_at")
    (fields["value"],) = fields["value"]
    return SetKey(msgspec.convert(fields, PlacementKey), set_by, set_at)


def _values(key: PlacementKey, set_by: str) -> dict[str, Any]:
    value = [_storable(key.value)]
    return {"value": value, "weight": key.weight, "sticky": key.sticky, "set_by": set_by, "set_at": now()}


def _storable(value: float | str) -> float | str:
    """JSON has no infinity: what is no number counts as the word that it is."""
    return value if isinstance(value, str) or math.isfinite(value) else str(value)


def _same(key: PlacementKey, other: PlacementKey) -> bool:
    return (key.value, key.weight, key.sticky) == (_storable(other.value), other.weight, other.sticky)


# -- The special keys that setup gave clusters, so that it takes back these and nothing else. The keys
# themselves stand with all others: one that a user has changed or removed is theirs from then on.
class DefaultKey(msgspec.Struct, frozen=True):
    """A special key as setup gave it to a cluster."""

    cluster: str
    name: str
    weight: float
    #: The name of the policy that setup was about.
    policy: str

    @property
    def key(self) -> PlacementKey:
        """The key of the cluster: what it asks for is always 0."""
        return PlacementKey(CLUSTER, self.cluster, SYSTEM, self.name, 0.0, self.weight)


class DefaultKeyChange(msgspec.Struct, frozen=True):
    """What is to become of the keys that setup gave clusters."""

    #: Given, and remembered.
    give: tuple[DefaultKey, ...] = ()
    #: Given before, and from now on remembered as of another policy.
    renew: tuple[DefaultKey, ...] = ()
    #: Removed, and forgotten.
    take: tuple[DefaultKey, ...] = ()
    #: Forgotten: they are not as setup gave them any more.
    leave: tuple[DefaultKey, ...] = ()


class DefaultKeys(msgspec.Struct, frozen=True):
    """The keys that stand, and those that setup gave."""

    keys: tuple[PlacementKey, ...] = ()
    given: tuple[DefaultKey, ...] = ()


def _default_keys(rows: EngineRows) -> DefaultKeys:
    given = rows.select(default_keys).order_by(*default_keys.primary_key)
    return DefaultKeys(stored_keys(rows), rows.records(DefaultKey, given))
