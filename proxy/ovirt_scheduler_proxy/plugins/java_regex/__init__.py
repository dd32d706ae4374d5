"""Finds regular expressions that Java would not compile: the engine judges the values of parameters by them.

It follows the grammar of java.util.regex.Pattern. What it refuses, Java refuses too. It lets pass what hangs
on more than the grammar (names of Unicode scripts, blocks, properties and characters; how far a look-behind
reaches), what follows a `(?x)`, and what nests a hundred deep.
"""

from __future__ import annotations

from ...worker.text import one_line
from .cursor import Cursor, LetPass, Refused
from .expression import read_alternatives
from .quoting import unquoted

#: Of what is wrong, this much is reported.
_LONGEST = 100


def problem(regex: str) -> str:
    """Why Java does not compile the expression; empty when it does, as far as is known."""
    cursor = Cursor(unquoted(regex))
    try:
        read_alternatives(cursor, 0)
        if cursor.rest:
            return "an unmatched )"
    except Refused as refused:
        return one_line(str(refused), _LONGEST)
    except LetPass:
        pass
    return ""
