"""Tags in searches: a name stands for the tags that it matches and for all below them.

Source: the engine's `BaseConditionFieldAutoCompleter.formatValue` and `TagsDirector`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ovirt_simulator.core.entities import Tag
from ovirt_simulator.http.search.errors import SearchFailure
from ovirt_simulator.http.search.values import Test


def tag_test(value: str, tags: Iterable[Tag]) -> Test:
    """Make the test for one tag of something.

    The case of a tag always counts, and the engine takes the name for a regular expression, without its
    backslashes. Raises `SearchFailure` for one that is none.
    """
    known = list(tags)
    try:
        matches = re.compile("^" + value.replace("%", "*").replace("*", ".*").replace("\\", "") + "$")
    except re.error as error:
        raise SearchFailure(str(error)) from None
    found = {tag.id for tag in known if matches.search(tag.name)}
    while below := {tag.id for tag in known if tag.parent in found and tag.id not in found}:
        found |= below
    names = {tag.name for tag in known if tag.id in found}
    return lambda held: held in names
