"""Policy units: where each comes from, what it is, and what is wrong with it.

Parameters are checked as the engine does: what it refuses there makes it drop the whole unit. Source: the
engine's CustomPropertiesUtils: `key=regex;key2=regex2` with an optional last semicolon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from ovirt_scheduler_proxy.worker.answers import escaped, one_line


class UnitKind(Enum):
    """What a unit can do; the value is the name that worker processes know it by."""

    FILTER = "filter"
    SCORE = "score"
    BALANCE = "balance"


@dataclass(frozen=True)
class Unit:
    """One policy unit of one kind, as the engine sees it."""

    name: str
    kind: UnitKind
    folder: Path
    module: str
    description: str
    #: `key=regex;key2=regex2`: the parameters that the engine offers for this unit.
    properties: str

    @property
    def file(self) -> Path:
        return self.folder / f"{self.module}.py"


class ProblemFound(msgspec.Struct, frozen=True):
    """What is wrong with a plugin, or with what the configuration says of units."""

    #: Empty: it is in the configuration.
    file: str
    #: Empty: it is not of one unit.
    unit: str
    #: As a sentence.
    problem: str

    def __str__(self) -> str:
        if not self.file:
            return self.problem
        subject = f"{one_line(self.unit)}: " if self.unit else ""
        return f"{self.file}: {subject}{self.problem}"


_ESCAPE = r"\\(?:[^0-9A-Za-z]|[tnrf]|x[0-9A-Fa-f]{2}|u(?![dD][89a-fA-F])[0-9A-Fa-f]{4})"
_MEMBER = rf"(?:[^\\\[\]&~|^-]|\|(?!\|)|{_ESCAPE})"
_MEMBERS = rf"(?:{_MEMBER}(?:-{_MEMBER})?|\\[dDsSwW](?!-[^\]]))+"
_CLASS = rf"\[\^?(?:-?{_MEMBERS}-?|-)\]"

#: What Java and Python have in common: what can be repeated, where nothing is yet, places, and repetitions.
_TOKEN = re.compile(
    rf"(?P<atom>[^\\^$|?*+()\[{{]|{_ESCAPE}|\\[dDsSwW]|{_CLASS}|\))"
    r"|(?P<start>\||\((?:\?[:=!]|(?!\?)))"
    r"|(?P<place>[\^$]|\\[bB])"
    r"|(?P<repeat>(?:[?*+]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})[?+]?)"
)
_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")

#: Deeper nesting is not judged: Python's parser recurses.
_MOST_GROUPS = 100
#: Of what is not judged, this much is shown.
_SHOWN = 12

_NO_COUNT = "a { that begins no repetition, as {2,3} does; a plain one is \\{"


def regex_problem(regex: str) -> str:
    """Why Java surely does not compile the expression; empty if it does, or that is not known."""
    if rest := unchecked_rest(regex):
        return _NO_COUNT if rest[0] == "{" and _COUNT.match(rest) is None else ""
    try:
        re.compile(regex)
    except re.error as error:
        return str(error)
    return ""


def unchecked_rest(regex: str) -> str:
    """From where what is not judged begins; empty if the expression is judged whole."""
    if regex.count("(") > _MOST_GROUPS:
        return regex
    at, before = 0, "start"
    while at < len(regex):
        found = _TOKEN.match(regex, at)
        if found is None:
            return regex[at:]
        # Java also repeats places, and repetitions by a count.
        if found.lastgroup == "repeat" and (before == "place" or (before != "atom" and found[0][0] == "{")):
            return regex[at:]
        at, before = found.end(), str(found.lastgroup)
    return ""


#: Of what is wrong, this much is reported.
_LONGEST = 200

_KEY = re.compile(r"[a-z_A-Z0-9]+")
_WHOLE = re.compile(r"[a-z_A-Z0-9]+=[^;]*(;[a-z_A-Z0-9]+=[^;]*)*;?")


def property_problems(properties: str) -> list[str]:
    """What the engine would refuse, as sentences; none if there are no errors, or no properties."""
    return [f"properties_validation: {one}" for one in _problems(properties)] if properties else []


def _problems(properties: str) -> list[str]:
    found = []
    seen: set[str] = set()
    for part in properties.removesuffix(";").split(";"):
        key, equals, regex = part.partition("=")
        if not equals:
            found.append(f"{_shown(part)} is not of the form key=regex (no regex may hold a ';')")
        elif not _KEY.fullmatch(key):
            found.append(f"the key {_shown(key)} may hold letters, digits and _ only, and no spaces")
        elif key in seen:
            found.append(f"the key {_shown(key)} stands there twice")
        elif refused := regex_problem(regex):
            found.append(f"Java does not compile {_shown(regex)} of {one_line(key, 100)}: {refused}")
        seen.add(key)
    if escaped(properties) != properties:
        found.append(f"{_shown(properties)} holds characters that cannot be shown")
    if not found and not _WHOLE.fullmatch(properties):
        found.append(f"{_shown(properties)} is not of the form key=regex;key2=regex2")
    return found


def unchecked_properties(properties: str) -> Iterator[str]:
    """Expressions of which Java alone knows whether it compiles them, as sentences."""
    for key, _, regex in (part.partition("=") for part in properties.split(";")):
        if rest := unchecked_rest(regex):
            of = f"properties_validation: {_shown(regex)} of {one_line(key, 100)}"
            yield f"{of}: not checked whether Java compiles it, from {_shown(rest[:_SHOWN])} on"


def _shown(text: str) -> str:
    return one_line(repr(text), _LONGEST)
