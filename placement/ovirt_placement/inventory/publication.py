"""A version of the engine's state, and what is asked at the service's socket: it, a decision, a call.

A reader gets what a version has that the one it knows has not, in MessagePack. All else is JSON, which a
policy unit writes and reads by the standard library, with lines of host ids after it: as JSON, thousands of
these would take longer than the decision.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.structs import fields, replace

from ovirt_placement.inventory.connection import NoService, Services
from ovirt_placement.model import Pending, Snapshot

#: The long lists of a snapshot, of which the records that differ travel alone, and what a record is known by.
_LISTS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("hosts", "vms", "affinity_groups", "affinity_labels"), attrgetter("id")),
    "frozen_keys": attrgetter("vm"),
}
#: Records that are encoded at a time: other threads decide meanwhile.
_PART = 500

_FIELDS = Snapshot.__struct_fields__
_decoders = {field.name: msgspec.msgpack.Decoder(field.type) for field in fields(Snapshot)}
_encode = msgspec.msgpack.encode

#: What is known before anything is.
EMPTY = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


class Changes(msgspec.Struct, frozen=True):
    """The fields of a snapshot that differ."""

    #: What they hold, in parts; of a long list, the records that are new or differ.
    content: dict[str, list[msgspec.Raw]] = {}
    #: Of a long list with other records, or in another order: by what these are known, in their order.
    orders: dict[str, list[str]] = {}


def find_changes(before: Snapshot, now: Snapshot) -> Changes:
    """What there is now; what is as it was before is the same object."""
    content: dict[str, list[msgspec.Raw]] = {}
    orders: dict[str, list[str]] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if old is new:
            continue
        if (key := _LISTS.get(field)) is None:
            content[field] = [msgspec.Raw(_encode(new))]
            continue
        known = set(map(id, old))
        content[field] = list(_parts([one for one in new if id(one) not in known]))
        order = list(map(key, new))
        if order != list(map(key, old)):
            orders[field] = order
    return Changes(content, orders)


def _parts(records: list[Any]) -> Iterator[msgspec.Raw]:
    for at in range(0, len(records), _PART):
        yield msgspec.Raw(_encode(records[at : at + _PART]))


def with_changes(before: Snapshot, changes: Changes) -> Snapshot:
    """The snapshot as it is now. Raises `ValueError` if these are no changes of it."""
    values: dict[str, Any] = {}
    try:
        for field, parts in changes.content.items():
            found = [_decoders[field].decode(part) for part in parts]
            if (key := _LISTS.get(field)) is None:
                (values[field],) = found
                continue
            records = {key(one): one for one in getattr(before, field)}
            records.update((key(one), one) for part in found for one in part)
            values[field] = tuple([records[name] for name in changes.orders.get(field, records)])
    except KeyError as error:
        raise ValueError(f"there is no {error}") from None
    return with_known(before, replace(before, **values))


def with_known(before: Snapshot, now: Snapshot) -> Snapshot:
    """The snapshot with the same objects for what is as it was: what was looked up in them holds."""
    values: dict[str, Any] = {}
    for field in _FIELDS:
        old, new = getattr(before, field), getattr(now, field)
        if (key := _LISTS.get(field)) is not None and old is not new:
            known = {key(one): one for one in old}
            new = tuple([same if (same := known.get(key(one))) == one else one for one in new])
            values[field] = old if len(old) == len(new) and all(map(is_, old, new)) else new
        elif old == new:
            values[field] = old
    return replace(now, **values)


_NEVER = float("-inf")


class Moments(NamedTuple):
    """Since when the parts of a snapshot may be out of date, by `now`; minus infinity for never read."""

    #: When the engine was last asked what has changed; what happened later may be missing, and of a few
    #: objects about which it takes long to answer also what happened before.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are.
    statistics_at: float = _NEVER
    #: When the store was last asked for placement keys, whether or not it answered.
    store_asked_at: float = _NEVER
    #: When the placement keys were those of the store.
    keys_at: float = _NEVER
    #: When all that placement keys refer to was last read of all VMs; what events reported since is there,
    #: too.
    details_at: float = _NEVER
    #: When the engine last answered all searches for members of placement rules.
    searches_at: float = _NEVER

    @property
    def as_of(self) -> float:
        """What happened before this moment is there, as far as the engine and the store reported it.

        A store that does not answer makes nothing older: what it said last counts.
        """
        return min(self.read_at, self.store_asked_at)

    @property
    def store_answers(self) -> bool:
        """Whether the store could be read when it was last asked for placement keys."""
        return self.keys_at == self.store_asked_at


@dataclass(frozen=True)
class Publication:
    """What the inventory service knows, in a version."""

    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    moments: Moments
    snapshot: Snapshot

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not there."""
        return now() - self.moments.as_of


def age(moment: float) -> float | None:
    """How many seconds ago a moment was; None for never."""
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, which is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Measured(IntEnum):
    """How much of what is measured a question needs; each holds the one before."""

    #: Whether rules are satisfied: nothing.
    NOTHING = 0
    #: What units of a cluster's policy say, ours and the engine's filters: what these read.
    FOR_UNITS = 1
    #: The check of HA reservation as well.
    FOR_RESERVATION = 2


#: What a policy unit does.
Method = Literal["filter", "score", "balance"]


class Refresh(msgspec.Struct, tag="refresh", frozen=True):
    """Answer with the state once it holds at this moment or later.

    Usually it is enough that engine and store report no change since. With `whole`, everything of the engine
    must have been read since: for who may not rely on events, which can be late. With `vm`, the engine must
    have been asked for that VM lately if it is not among those that are known. `known` is the version that
    the asker has: it gets what has changed since, or with None the moments alone.
    """

    not_before: float
    whole: bool = False
    vm: str | None = None
    known: int | None = 0


class Wake(msgspec.Struct, tag="wake", frozen=True):
    """Answer when there is another version than this."""

    version: int


class Decide(msgspec.Struct, tag="decide", frozen=True):
    """Answer as a policy unit: the hosts of a filter, the ranks of a weight, the move of a balance."""

    method: Method
    unit: str
    #: In the lines after the rest, as in the answer.
    hosts: list[str] = []
    vm: str = ""
    parameters: dict[str, str] = {}
    #: A person asks: nothing follows from the answer.
    by_hand: bool = False
    #: Whether reasons are recorded, and whether anybody reads in a log why each host fares as it does.
    records: bool = False
    explains: bool = False
    #: Whether the caller asks again by itself for a VM that the engine does not show yet.
    asks_again: bool = False


Question = Refresh | Wake | Decide


class State(msgspec.Struct, frozen=True):
    """The state of a version, as far as it differs from what the asker has; or why there is no newer one."""

    version: int = 0
    #: The version that the changes are to; 0 if they are all there is.
    since: int = 0
    #: None where there is no version yet.
    moments: Moments | None = None
    changes: Changes = Changes()
    #: What is on its way and no part of the version: open intents, and what was accepted a moment ago.
    pending: tuple[Pending, ...] = ()
    error: str | None = None


class Decided(msgspec.Struct, frozen=True):
    """What a unit answers."""

    #: The hosts that a filter accepts, that a weight ranks, or where a balance sends the VM.
    hosts: list[str] = []
    ranks: list[int] = []
    vm: str = ""
    #: Of the state that was decided on.
    age_seconds: float = 0.0
    #: Why hosts were refused, as JSON.
    reasons: str = ""
    #: Why there is no answer. It `refuses` the VM loudly, or is to be asked again: the VM is `awaited`.
    failure: str | None = None
    refuses: bool = False
    awaited: bool = False
    #: Lines for the caller's log: level and text.
    log: list[tuple[int, str]] = []


#: A list of 5,000 hosts takes 200 KiB.
LONGEST_QUESTION = 1 << 20

Answer = TypeVar("Answer", State, Decided, int)
Known = TypeVar("Known")

question_decoder: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)


def encoded(content: Question | State | Decided | int) -> bytes:
    """What travels in a frame."""
    if isinstance(content, State):
        return msgspec.msgpack.encode(content)
    if not isinstance(content, Decide | Decided):
        return msgspec.json.encode(content)
    rest = msgspec.json.encode(replace(content, hosts=[]))
    return b"\n".join((rest, "\n".join(content.hosts).encode())) if content.hosts else rest


def decoded(content: bytes | bytearray, decode: Callable[[bytes | bytearray], Known]) -> Known:
    """What was asked or answered, with its lines of hosts. Raises `ValueError` if it is nothing such."""
    rest, _, hosts = content.partition(b"\n")
    found = decode(rest)
    if not hosts:
        return found
    if not isinstance(found, Decide | Decided):
        raise ValueError("no hosts belong to this")
    return replace(found, hosts=hosts.decode().split("\n"))


def ask(
    directory: Path, question: Question, timeout: float, kind: type[Answer], services: Services | None = None
) -> Answer:
    """Ask the service, by what is known of the `services`, if any, and wait at most this many seconds.

    Raises what `Services.ask` raises.
    """
    made = Services()
    put = made.put if services is None else services.ask
    try:
        answer = put(directory, encoded(question), timeout)
        if kind is State:
            return msgspec.msgpack.decode(answer, type=kind)
        found: Answer = decoded(answer, partial(msgspec.json.decode, type=kind))
        return found
    except ValueError:
        raise NoService from None
    finally:
        made.close()


def ask_moments(directory: Path, timeout: float) -> Moments | None:
    """The moments of what the service knows; None of nothing. Raises as `ask` does."""
    return ask(directory, Refresh(0.0, known=None), timeout, State).moments
