"""Matches a value by an expression that a plugin's author wrote: it may take time that has no end.

Nothing can interrupt Python's matching but the end of its process.
"""

from __future__ import annotations

import re
import subprocess
import sys

#: What an administrator hardly notices.
_LONGEST_SECONDS = 2.0
#: Values and expressions together that take no time worth a process.
_SHORT = 12

_PROGRAM = """
import re, sys
regex, value = (text.encode("utf-8", "surrogateescape").decode() for text in sys.argv[1:])
sys.exit(0 if re.fullmatch(regex, value) else 1)
"""


def matches(regex: str, value: str) -> bool | None:
    """Whether the whole value matches; None where that takes too long to know.

    Raises `re.error` for an expression that is none of Python's.
    """
    compiled = re.compile(regex)
    if len(value) <= _SHORT:
        return compiled.fullmatch(value) is not None
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter; the texts are arguments, and no program
            [sys.executable, "-I", "-c", _PROGRAM, regex, value], timeout=_LONGEST_SECONDS, check=False
        )
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None
    return done.returncode == 0
