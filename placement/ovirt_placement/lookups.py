"""Keeps what a rule derives from a whole snapshot with that snapshot, so that it is derived once.

What differs between two snapshots says what the later one may take over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from operator import is_not
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from msgspec.structs import replace

from ovirt_placement.model import Pending, Snapshot, Vm

Exchanged: TypeAlias = Mapping[str, Vm | None]

#: This many VMs may have come or gone at once.
_MOST_CAME = 8
#: Parts of a snapshot that say which groups there are, and for whom.
_FRAME = ("clusters", "affinity_groups", "affinity_labels")
#: Stands among parts: the same VMs are in the same clusters and groups, wherever they run.
_MEMBERS = "members"
#: All that look-ups hang on, by the names that they have in a snapshot's dictionary, but for what is pending.
_parts: dict[str, frozenset[str]] = {
    name: frozenset(parts)
    for parts, names in (
        (("clusters",), ("cluster_by_id",)),
        (("hosts",), ("host_by_id", "hosts_of_cluster")),
        (("vms",), ("vm_by_id", "vms_of_host")),
        (_FRAME, ("label_by_id", "group_by_id", "group_vms", "group_hosts", "groups_of_vm")),
        (("placement_rules",), ("rule_by_id",)),
    )
    for name in names
}


def exchanged_vms(before: Snapshot, now: Snapshot) -> Exchanged | None:
    """The VMs that are other objects now, by id, None for those that are gone.

    None if many came or went, or if they changed places: then it is quicker to look at all of them again.
    """
    if before.vms is now.vms:
        return {}
    if len(before.vms) == len(now.vms):
        different = map(is_not, before.vms, now.vms)
        pairs = [(before.vms[place], now.vms[place]) for place, other in enumerate(different) if other]
        if all(one.id == other.id for one, other in pairs):
            return {other.id: other for _, other in pairs}
    old, new = before.vm_by_id, now.vm_by_id
    if abs(len(old) - len(new)) > _MOST_CAME:
        return None
    if [name for name in old if name in new] != [name for name in new if name in old]:
        return None
    return {name: new.get(name) for name in exchanged_ids(old, new)}


def exchanged_ids(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """What is another object now, or only in one of the two."""
    if before is now:
        return set()
    return {name for name, one in now.items() if before.get(name) is not one} | (before.keys() - now.keys())


def same_members(before: Snapshot, now: Snapshot, exchanged: Exchanged) -> bool:
    """Whether all groups have the same members: groups and clusters are the same, and each VM's cluster.

    A VM that came or went was no member if no group names it.
    """
    if any(getattr(before, part) is not getattr(now, part) for part in _FRAME):
        return False
    pairs = [(before.vm_by_id.get(name), vm) for name, vm in exchanged.items()]
    if any(old is not None and new is not None and old.cluster != new.cluster for old, new in pairs):
        return False
    came_or_went = {name for name, vm in exchanged.items() if vm is None or name not in before.vm_by_id}
    return not came_or_went or all(map(came_or_went.isdisjoint, before.group_vms.values()))


def _carry_over(snapshot: Snapshot, before: Snapshot, exchanged: Exchanged | None) -> None:
    """Let a snapshot have of what was looked up in the one before what says the same of both."""
    own, known = snapshot.__dict__, before.__dict__
    if exchanged is not None and "vm_by_id" in known:
        # Where VMs came or went, it is there already.
        own.setdefault("vm_by_id", {**known["vm_by_id"], **exchanged} if exchanged else known["vm_by_id"])
    same = {part for part in Snapshot.__struct_fields__ if getattr(snapshot, part) is getattr(before, part)}
    if exchanged is not None and same_members(before, snapshot, exchanged):
        same.add(_MEMBERS)
    for name, parts in _parts.items():
        if name in known and parts <= same:
            own.setdefault(name, known[name])


def _pending_hosts(
    snapshot: Snapshot, before: Mapping[str, tuple[str, ...]], differing: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """What `Snapshot.pending_hosts` finds, where it may be otherwise than before for these VMs alone."""
    ways: defaultdict[str, list[str]] = defaultdict(list)
    if differing:
        for entry in snapshot.pending:
            if entry.vm in differing:
                ways[entry.vm].append(entry.host)
    found = dict(before)
    for name in differing:
        vm = snapshot.vm_by_id.get(name)
        if vm is not None and vm.migrating_to is not None:
            ways[name].append(vm.migrating_to)
        found.pop(name, None)
        if name in ways:
            found[name] = tuple(dict.fromkeys(ways[name]))
    return found


Derived = TypeVar("Derived")
Arguments = ParamSpec("Arguments")
#: What is derived from a whole snapshot, or looked up.
LookUp: TypeAlias = Callable[Concatenate[Snapshot, Arguments], Derived]

#: What is derived once a snapshot, by the name that it has in the snapshot's dictionary.
_look_ups: dict[str, Callable[..., object]] = {}
#: What can be derived with the help of what was derived from the snapshot before.
_continued: set[str] = set()
#: In a snapshot's dictionary: by the name of what can be continued, where that is to be found.
_EARLIER = f"{__name__}.earlier"


class Earlier(NamedTuple):
    """A snapshot of which something was derived that helps to derive it from another one."""

    snapshot: Snapshot
    #: The VMs of which not the same is pending in both; it may name others, too.
    pending: Collection[str]
    #: The VMs that are other objects, or gone; None where many came or went.
    exchanged: Exchanged | None

    def differing(self, now: Snapshot) -> set[str]:
        """The VMs that may be elsewhere than before, or other ones."""
        if self.exchanged is None:
            return {*self.pending, *exchanged_ids(self.snapshot.vm_by_id, now.vm_by_id)}
        return {*self.pending, *self.exchanged}

    def and_then(self, pending: Collection[str], exchanged: Exchanged | None) -> Earlier:
        """The same for a snapshot that differs in more."""
        every = None if self.exchanged is None or exchanged is None else {**self.exchanged, **exchanged}
        return Earlier(self.snapshot, {*self.pending, *pending}, every)


def once_per_snapshot(derive: LookUp[Arguments, Derived]) -> LookUp[Arguments, Derived]:
    """Compute on the first call for a snapshot, or for each of some arguments; then look up what was found.

    A snapshot never changes, so this is memory and no state. It lies in the snapshot's own
    dictionary, as its cached properties do, and goes when the snapshot goes.
    """
    name = _name(derive)

    @wraps(derive)
    def look_up(snapshot: Snapshot, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Derived:
        found: dict[tuple[Any, ...], Derived] = snapshot.__dict__.setdefault(name, {})
        if args not in found:
            found[args] = derive(snapshot, *args, **kwargs)
        return found[args]

    _look_ups[name] = look_up
    return look_up


def once_for(*parts: str) -> Callable[[LookUp[Arguments, Derived]], LookUp[Arguments, Derived]]:
    """Compute once for all snapshots in which these parts are the same objects, and not only equal."""

    def decorate(derive: LookUp[Arguments, Derived]) -> LookUp[Arguments, Derived]:
        _parts[_name(derive)] = frozenset(parts)
        return once_per_snapshot(derive)

    return decorate


#: Compute once for a snapshot and all those that differ in nothing but what is pending.
once_whatever_is_pending = once_for(*(part for part in Snapshot.__struct_fields__ if part != "pending"))
#: Compute once for all snapshots with the same clusters, groups and labels, and the same VMs in them.
once_for_members = once_for(*_FRAME, _MEMBERS)


def continued(
    derive: Callable[Concatenate[Snapshot, Earlier | None, Arguments], Derived],
) -> LookUp[Arguments, Derived]:
    """Compute on the first call for a snapshot, from the one before where `share` named both.

    `derive` is given that one, too, or none: what both have in common need not be looked at again.
    """
    name = _name(derive)

    @wraps(derive)
    def of_snapshot(snapshot: Snapshot, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Derived:
        earlier: Earlier | None = snapshot.__dict__.get(_EARLIER, {}).get(name)
        if earlier is not None and args not in earlier.snapshot.__dict__[name]:
            earlier = None
        return derive(snapshot, earlier, *args, **kwargs)

    _continued.add(name)
    return once_per_snapshot(of_snapshot)


def with_more_pending(
    base: Snapshot, more: tuple[Pending, ...], *, like: Snapshot, differing: set[str] | None = None
) -> Snapshot:
    """The snapshot with more that is pending, and with all look-ups that this does not change.

    What it does change is derived from `like`, which differs from it in what is pending at most: in that of
    the VMs named, if they are.
    """
    laid = replace(base, pending=base.pending + more)
    # What was looked up in one holds for all of them, and for the next version made of the base.
    _carry_over(base, like, exchanged_vms(like, base))
    _carry_over(laid, base, {})
    share(laid, like, differing)
    return laid


def share(snapshot: Snapshot, like: Snapshot, differing: set[str] | None = None) -> None:
    """Let a snapshot have what was looked up in the one before, as far as that holds or helps.

    It helps one snapshot only: else each would keep alive all that came before it. They differ in what is
    pending of the VMs named at most, if they are.
    """
    known: dict[str, Earlier] = snapshot.__dict__.get(_EARLIER, {})
    found: dict[str, Earlier] = like.__dict__.pop(_EARLIER, {})
    found |= {name: Earlier(like, frozenset(), {}) for name in _continued if like.__dict__.get(name)}
    lacking = {
        name: one for name, one in found.items() if name not in known and name not in snapshot.__dict__
    }
    if differing is None:
        needed = bool(lacking) or "pending_hosts" not in snapshot.__dict__
        other = {*like.pending} ^ {*snapshot.pending} if needed and like.pending != snapshot.pending else ()
        differing = {entry.vm for entry in other}
    exchanged = exchanged_vms(like, snapshot)
    _carry_over(snapshot, like, exchanged)
    if (
        exchanged is not None
        and "pending_hosts" in like.__dict__
        and "pending_hosts" not in snapshot.__dict__
    ):
        before = like.__dict__["pending_hosts"]
        snapshot.__dict__["pending_hosts"] = _pending_hosts(snapshot, before, {*exchanged, *differing})
    if lacking:
        furthered = {name: one.and_then(differing, exchanged) for name, one in lacking.items()}
        snapshot.__dict__[_EARLIER] = known | furthered


def prepare(snapshot: Snapshot, like: Snapshot) -> None:
    """Make the look-ups that were made in another snapshot, in their order: they will be asked for again."""
    share(snapshot, like)
    for name, found in tuple(like.__dict__.items()):
        look_up = _look_ups.get(name)
        if name == _EARLIER:
            continue
        if look_up is None:
            getattr(snapshot, name)  # one of the snapshot's own
        else:
            for args in tuple(found):
                look_up(snapshot, *args)
    earlier: dict[str, Earlier] = snapshot.__dict__.get(_EARLIER, {})
    for name, one in earlier.items():
        for args in tuple(one.snapshot.__dict__[name]):
            _look_ups[name](snapshot, *args)
    snapshot.__dict__.pop(_EARLIER, None)


def _name(derive: Callable[..., object]) -> str:
    return f"{derive.__module__}.{derive.__qualname__}"
