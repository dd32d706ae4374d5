"""Judges regular expressions of parameters, by which the engine's Java judges their values.

Python compiles them as Java does as long as they are made of what both languages have: see `_TOKEN`. What
else stands in one is not judged. Source: java.util.regex.Pattern.
"""

from __future__ import annotations

import re

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


def problem(regex: str) -> str:
    """Why Java surely does not compile the expression; empty if it does, or that is not known."""
    if rest := _unchecked(regex):
        return _NO_COUNT if rest[0] == "{" and _COUNT.match(rest) is None else ""
    try:
        re.compile(regex)
    except re.error as error:
        return str(error)
    return ""


def unchecked(regex: str) -> str:
    """Where what is not judged begins, to be shown; empty if the expression is judged whole."""
    return _unchecked(regex)[:_SHOWN]


def _unchecked(regex: str) -> str:
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
