"""What a word of the configuration, of a rule or of a key names: an id, a name, or names by a pattern."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from ovirt_placement.model.record import Record
from ovirt_service.decoding import alike, did_you_mean

#: Stands for any characters, or none, in a name; no name of the engine's has one.
WILDCARD: Final = "*"


class Identified(Protocol):
    """What has an id, and a name that people know."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


Thing = TypeVar("Thing", bound=Identified)
_Value = TypeVar("_Value")


class UnmatchedName(Record, frozen=True, omit_defaults=False):
    """A name that stands somewhere and matches nothing in the engine: what it is to do is not done."""

    #: Such as `[enforcer] exclude_vms`, or a placement rule.
    where: str
    #: What it should name: VM, host, cluster ...
    kind: str
    word: str
    #: Names that are most like it, the best first.
    nearest: tuple[str, ...] = ()
    #: Whether a placement rule has it.
    in_rule: bool = False

    @property
    def what(self) -> str:
        """The fault without its place."""
        several = ":" in self.word or WILDCARD in self.word
        what = f"{self.word} names no {self.kind}" if several else f"there is no {self.kind} {self.word}"
        return f"{what}{did_you_mean(self.nearest)}"

    @property
    def sentence(self) -> str:
        return f"{self.where}: {self.what}"


def unmatched(
    where: str, kind: str, word: str, known: Iterable[str], *, in_rule: bool = False
) -> UnmatchedName:
    """A name that matches none of the known ones."""
    return UnmatchedName(where, kind, word, alike(word, known), in_rule)


def fits(word: str, name: str) -> bool:
    """Whether a word is this name, or a pattern of it."""
    return word == name or (WILDCARD in word and _pattern(word).fullmatch(name) is not None)


def begins(prefix: str, name: str) -> bool:
    """Whether a name begins with a prefix, which may be a pattern."""
    return name.startswith(prefix) or (WILDCARD in prefix and _pattern(prefix).match(name) is not None)


def named(words: Collection[str], identity: str, name: str) -> bool:
    """Whether a list of ids, names and patterns has this one."""
    return identity in words or name in words or any(fits(word, name) for word in words if WILDCARD in word)


def called(word: str, things: Iterable[Thing]) -> list[Thing]:
    """Those of this id, or else of this name, or else of names that fit the pattern."""
    every = list(things)
    exact = [one for one in every if one.id == word] or [one for one in every if one.name == word]
    return exact or [one for one in every if WILDCARD in word and fits(word, one.name)]


def value_of(values: Mapping[str, _Value], identity: str, name: str) -> _Value | None:
    """What a table says of one: by its id, by its name, or by the longest pattern; `*` is of all others."""
    fitting = (word for word in values if WILDCARD in word and fits(word, name))
    word = next((one for one in (identity, name) if one in values), None)
    found = max(fitting, key=lambda one: (len(one), one), default=None) if word is None else word
    return None if found is None else values[found]


@lru_cache(maxsize=1024)
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, word.split(WILDCARD))), re.DOTALL)
