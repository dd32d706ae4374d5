"""What all records are made of; and those of what people ask of placements: placement keys and rules."""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.model import Snapshot


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What rules and answers consist of."""


class Struct(Record, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a cluster consists of: decoded strictly.

    Such records form no cycles; with tens of thousands of them, the garbage collector's looking for some
    would be what an answer to the engine takes longest for.
    """


class Worded(StrEnum):
    """A word of documents and of the store, each with the words in which people read it."""

    text: str

    def __new__(cls, value: str, text: str = "") -> Self:
        one = str.__new__(cls, value)
        one._value_, one.text = value, text
        return one


# -- Placement keys: those that people set, those that VMs are remembered by, their levels and their words.
#: Keys of a host: they describe it and have no part in the hierarchy of a VM.
NODE = "node"

CLUSTER = "cluster"
SERVER = "server"

#: Copies of sticky node keys stand here: weaker than an explicit key of the server, stronger than its offer.
STICKY = "server_sticky"

#: What a VM's keys are compiled from; a later level wins. An offer is what its resource was made from.
LEVELS = (
    CLUSTER, "billing_entity", "customer_offer", "customer", "image_offer", "image", "vdc_offer", "vdc",
    "server_offer", STICKY, SERVER, "disk_offer", "disk", "network_offer", "network", "nic_offer", "nic",
)  # fmt: skip

#: Where users may set a key; sticky copies are made by starts alone.
SETTABLE = (*(level for level in LEVELS if level != STICKY), NODE)

SYSTEM = "system"
BILLING_ENTITY = "be"
CUSTOMER = "customer"
#: Who sets keys: the operator, a billing entity, the customer.
CLASSES = (SYSTEM, BILLING_ENTITY, CUSTOMER)

#: Customers key only what belongs to them; operators (system) and billing entities (be) key every level.
CUSTOMER_LEVELS = frozenset({"image", SERVER, "disk", "network", "nic"})

#: What administrators call what stands on a level.
_CALLED = {"vm": SERVER, "host": NODE}

_STRENGTH = {level: strength for strength, level in enumerate(LEVELS)}
MOST_CHARACTERS: Final = 255
#: Control and format characters, halves of characters, ends of lines.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def level_of(word: str) -> str:
    """The level that a word on the command line means: one that is a level, or `vm`, or `host`."""
    return _CALLED.get(word, word)


def check_level(level: str, path: str = "") -> None:
    """Raise `UserError`, with the nearest level or all of them, if keys cannot be set on it."""
    if level not in SETTABLE:
        hint = nearest(level_of(level), SETTABLE) or f"; levels: {', '.join(SETTABLE)}"
        raise UserError(f'{path}unknown level "{level}"{hint}')


def strength(level: str) -> int | None:
    """How strong a level is in the hierarchy of a VM, from 0 on; None if it has no part in it."""
    return _STRENGTH.get(level)


def may_set(key_class: str, level: str) -> bool:
    """Whether keys of this class may stand on this level; only the operator keys hosts."""
    if level == NODE:
        return key_class == SYSTEM
    return key_class != CUSTOMER or level in CUSTOMER_LEVELS


class KeyPlace(NamedTuple):
    """Where a key stands; each place holds one."""

    level: str
    #: The id of the object on that level: a cluster, a VM, a host ...
    resource: str
    key_class: str
    name: str


class PlacementKey(Struct, frozen=True):
    level: str
    resource: str
    #: The class of key: system, be or customer.
    key_class: str = msgspec.field(name="class")
    name: str
    #: A number, or whatever its author wrote in place of one.
    value: float | str
    weight: float | None = None
    sticky: bool = False

    @property
    def place(self) -> KeyPlace:
        return KeyPlace(self.level, self.resource, self.key_class, self.name)


def written(value: float | str | None) -> str:
    """A value or weight as its author would write it, with all digits; nothing for one that is not there."""
    return (value or "") if isinstance(value, str | None) else repr(value).removesuffix(".0")


def figures(value: float | str, weight: float | None) -> str:
    return written(value) + ("" if weight is None else f" (weight {written(weight)})")


class FrozenKeys(Struct, frozen=True):
    vm: str
    keys: tuple[tuple[str, float], ...]


class StickyCopy(Struct, frozen=True):
    vm: str
    name: str
    value: float
    weight: float


def check_text(name: str, value: float | str = "") -> None:
    """Raise `UserError` if the name of a key or a rule is not legible, or the key's value is endless."""
    for kind, text in (("name", name), ("value", value)):
        if isinstance(text, str) and len(text) > MOST_CHARACTERS:
            raise UserError(f"{kind}: {len(text):,} characters are too many: at most {MOST_CHARACTERS}")
    if any(unicodedata.category(one) in _UNSEEN for one in name):
        raise UserError(f"name: {name!a} holds characters that cannot be seen")


# -- Placement rules: what is asked of where VMs run that no affinity group of the engine can ask.
#: What the id of every placement rule begins with: no id of the engine does.
ID_PREFIX = "rule:"
#: What a word begins with that names several VMs or hosts at once.
TAG, GROUP, LABEL, SEARCH = "tag:", "group:", "label:", "search:"

#: What a search looks for.
SearchOf = Literal["vms", "hosts"]


class MemberSearch(Struct, frozen=True):
    """A search of the engine that a rule names, and who it finds."""

    of: SearchOf
    text: str
    #: Ids; null as long as the engine has not answered it.
    found: tuple[str, ...] | None = None
    #: Why it has no answer, or none that is new; empty if it has.
    problem: str = ""


class RuleDomain(Struct, frozen=True):
    """Hosts that fail together, as a rule lists them."""

    name: str
    #: Hosts, by name or id.
    hosts: tuple[str, ...]


class PlacementRule(Struct, frozen=True):
    """One rule; its kind says which of the fields count, and what they mean (docs/placement-rules.md).

    VMs and hosts stand as they were named: by name or id, `tag:`, `group:` (an affinity group), `label:` (an
    affinity label) or `search:` (of the engine). Who these are is looked up in each state.
    """

    #: Its name; an engine has one rule of each name.
    name: str
    kind: str
    #: The cluster whose VMs it is about, by name or id.
    cluster: str
    vms: tuple[str, ...] = ()
    #: The second set of a rule between two; of a restart order, those that restart first.
    other_vms: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    #: A host tag that begins with one of these is the name of a failure domain of all hosts that have it.
    domain_tags: tuple[str, ...] = ()
    domains: tuple[RuleDomain, ...] = ()
    #: The most VMs, vCPUs or MiB.
    most: int | None = None
    #: The fewest failure domains.
    least: int | None = None
    #: By how many VMs two failure domains may differ.
    max_skew: int | None = None
    #: With fewer failure domains than these, some count as empty.
    min_domains: int | None = None
    #: What is counted of VMs: `vms`, `vcpus` or `memory_mb`.
    counted: str = "vms"
    #: Hard; otherwise it is preferred, the more so the higher its priority.
    enforcing: bool = True
    priority: float = 1.0
    #: Whether it must be satisfied in every state on the way; otherwise in the end.
    continuous: bool = True
    enabled: bool = True

    @property
    def id(self) -> str:
        """What answers name it by, among affinity groups."""
        return f"{ID_PREFIX}{self.name}"

    @property
    def names_vm_tags(self) -> bool:
        """Whether the tags of VMs say who its members are."""
        return any(word.startswith(TAG) for word in (*self.vms, *self.other_vms))

    @property
    def names_host_tags(self) -> bool:
        """Whether the tags of hosts say what its hosts or domains are."""
        listed = (host for domain in self.domains for host in domain.hosts)
        return bool(self.domain_tags) or any(word.startswith(TAG) for word in (*self.hosts, *listed))

    @property
    def searches(self) -> Iterator[tuple[SearchOf, str]]:
        """What of the engine it has searched, and by which text."""
        domains = (host for domain in self.domains for host in domain.hosts)
        yield from (("vms", text) for text in _searched((*self.vms, *self.other_vms)))
        yield from (("hosts", text) for text in _searched((*self.hosts, *domains)))


def _searched(words: Iterable[str]) -> Iterator[str]:
    return (word.removeprefix(SEARCH) for word in words if word.startswith(SEARCH))


# -- Makes records with ids into records of answers, in which names stand next to the ids.
_Record = TypeVar("_Record", bound=Record)
_Reader = Callable[[Any, Any], Any]


class From(NamedTuple):
    """Stands with the type of a field that is made of all of the source, not its field of the same name."""

    #: A path of attributes, or what makes it of the source and the snapshot.
    made: str | _Reader

    def read(self, source: object, snapshot: "Snapshot") -> Any:
        return attrgetter(self.made)(source) if isinstance(self.made, str) else self.made(source, snapshot)


def with_names(kind: type[_Record], source: object, snapshot: "Snapshot", /, **others: Any) -> _Record:
    """A record of this kind: its fields are those of the source, or of these others, with names next to ids.

    Of a source that is a tuple, they are its items in their order. What is of a field's type already stays.
    What neither has is as by default.
    """
    readers, made = _readers(kind)
    if isinstance(source, tuple):
        values = dict(zip((name for name in readers if name not in made), source, strict=not made))
    else:
        values = {name: getattr(source, name) for name in readers if hasattr(source, name)}
    if made:
        values |= {name: one.read(source, snapshot) for name, one in made.items() if name not in others}
    values |= others
    return kind(**{name: read(values[name], snapshot) for name, read in readers.items() if name in values})


@cache
def _readers(kind: type[Record]) -> tuple[Mapping[str, _Reader], Mapping[str, From]]:
    known: dict[str, Any] = {}  # what types name, and functions that stand with them
    for base in reversed(kind.__mro__):
        known |= vars(sys.modules[base.__module__])
    hints = get_type_hints(kind, known, include_extras=True)
    made = {name: one for name, hint in hints.items() for one in get_args(hint) if isinstance(one, From)}
    return {name: _reader(hints[name]) for name in kind.__struct_fields__}, made


def _reader(hint: Any) -> _Reader:
    inner = [one for one in get_args(hint) if one is not NoneType]
    if get_origin(hint) in (Union, UnionType) and len(inner) == 1:
        read = _reader(inner[0])
        return lambda value, snapshot: None if value is None else read(value, snapshot)
    if get_origin(hint) is Annotated:
        return partial(_named, *inner[:2]) if callable(inner[1]) else _reader(inner[0])
    if get_origin(hint) is Mapping:
        read = _reader(inner[1])
        return lambda value, snapshot: {key: read(one, snapshot) for key, one in value.items()}
    if get_origin(hint) is tuple and inner[-1] is Ellipsis:
        return partial(_several, _reader(inner[0]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return lambda value, snapshot: value if isinstance(value, hint) else with_names(hint, value, snapshot)
    return lambda value, _: value


def _named(kind: Any, name: _Reader, value: Any, snapshot: "Snapshot") -> Any:
    return value if isinstance(kind, type) and isinstance(value, kind) else name(value, snapshot)


def _several(read: _Reader, values: Any, snapshot: "Snapshot") -> tuple[Any, ...]:
    return tuple(read(one, snapshot) for one in (values.items() if isinstance(values, Mapping) else values))
