"""Policy units: where each comes from, what it is, and what is wrong with it.

Parameters are checked as the engine does: what it refuses there makes it drop the whole unit. Source: the
engine's CustomPropertiesUtils: `key=regex;key2=regex2` with an optional last semicolon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

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


@dataclass(frozen=True)
class Problem:
    """Something that an administrator should repair in a plugin file."""

    file: Path
    sentence: str
    #: The unit that it is about, where it is about one.
    unit: str = ""

    def __str__(self) -> str:
        subject = f"{one_line(self.unit)}: " if self.unit else ""
        return f"{self.file}: {subject}{self.sentence}"


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
    if rest := _rest_unchecked(regex):
        return _NO_COUNT if rest[0] == "{" and _COUNT.match(rest) is None else ""
    try:
        re.compile(regex)
    except re.error as error:
        return str(error)
    return ""


def unchecked_regex(regex: str) -> str:
    """Where what is not judged begins, to be shown; empty if the expression is judged whole."""
    return _rest_unchecked(regex)[:_SHOWN]


def _rest_unchecked(regex: str) -> str:
    if regex.count("(") > _MOST_GROUPS:
        return regex
    at, before = 0, "start"
    while at < len(regex):
        found = _TOKEN.match(regex, at)
        if found is None or (found.lastgroup == "repeat" and not _is_common(found[0], before)):
            return regex[at:]
        at, before = found.end(), str(found.lastgroup)
    return ""


def _is_common(repetition: str, before: str) -> bool:
    """Whether both take or refuse it here: Java also repeats places, and repetitions by a count."""
    return before == "atom" or (before != "place" and repetition[0] != "{")


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


def unchecked_properties(properties: str) -> list[str]:
    """Expressions that are not judged whole, as sentences."""
    pairs = (part.partition("=") for part in properties.split(";"))
    return [
        f"properties_validation: {_shown(regex)} of {one_line(key, 100)}: not checked whether Java compiles"
        f" it, from {_shown(rest)} on"
        for key, _, regex in pairs
        if (rest := unchecked_regex(regex))
    ]


def _shown(text: str) -> str:
    return one_line(repr(text), _LONGEST)
