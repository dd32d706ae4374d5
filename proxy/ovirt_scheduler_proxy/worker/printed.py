"""Finds a unit's answer in what it printed: the manner of plugins written for the old proxy."""

from __future__ import annotations

import ast
import re
from typing import Any

#: Stands for "no answer was printed", which is not the same as a printed None.
NOTHING = object()

# The plain list of ids that nearly every filter prints: read so, it takes a fraction of a full parse.
_PLAIN_LIST = re.compile(r"\[('[^'\\\n]*'(?:, '[^'\\\n]*')*)?\]")

# What the old proxy's sample balancers print: a VM and a list, not written as a tuple.
_VM_AND_HOSTS = re.compile(r"([^\s\[\](),'\"]+) (\[.*\])")


def find_answer(printed: str, balance: bool) -> tuple[Any, str]:
    """Return the printed answer and the rest of the text.

    The answer is the whole text where that is a Python literal, else the last line that is a list or a tuple.
    Without any, it is `NOTHING`.
    """
    text = printed.strip()
    if not text:
        return NOTHING, ""
    answer = _read(text, balance)
    if answer is not NOTHING:
        return answer, ""
    lines = printed.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if not line.endswith(("]", ")")):
            continue
        answer = _read(line, balance)
        if isinstance(answer, (list, tuple)):
            return answer, "\n".join(lines[:number] + lines[number + 1 :])
    return NOTHING, printed


def _read(text: str, balance: bool) -> Any:
    if _PLAIN_LIST.fullmatch(text):
        return text[2:-2].split("', '") if len(text) > 2 else []
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    pair = _VM_AND_HOSTS.fullmatch(text) if balance else None
    if pair is None:
        return NOTHING
    return _read(f"({pair[1]!r}, {pair[2]})", False)
