"""Tells which regular expressions Java would not compile: the engine judges the values of parameters by them.

It follows the grammar of java.util.regex.Pattern. What it refuses, Java refuses too; what hangs on more than
the grammar (the names of Unicode classes, how far a look-behind reaches) it lets pass.
"""

from __future__ import annotations

import re

_CLASSES = frozenset("dDsSwWhHvV")
_CHARACTERS = frozenset("aefnrt")
_OUTSIDE_CLASSES = frozenset("bBAGzZRX123456789")
_FLAGS = frozenset("imsducU")
_LARGEST = 2**31 - 1
#: Deeper nesting is left to Java.
_DEEPEST = 100

_HEXADECIMAL = re.compile(r"x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})|u[0-9A-Fa-f]{4}")
_OCTAL = re.compile(r"0(?:[0-3][0-7]{2}|[0-7]{1,2})")
_FAMILY = re.compile(r"[pP](?:\{[^}]+\}|[^{])", re.DOTALL)
_NAMED_CHARACTER = re.compile(r"N\{[^}]+\}")
_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9]*)>")
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_MODIFIERS = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")

# What turns the rest of an expression into another language.
_OTHER_LANGUAGE = re.compile(r"\\Q|\(\?[a-zA-Z]*x")


class _Refused(Exception):
    """Java would not compile this."""


class _LetPass(Exception):
    """Only Java can tell."""


def problem(regex: str) -> str:
    """Why Java does not compile the expression; empty when it does, as far as can be told."""
    if _OTHER_LANGUAGE.search(regex):
        return ""
    reader = _Reader(regex)
    try:
        reader.alternatives(0)
        if reader.rest:
            return "an unmatched )"
    except _Refused as refused:
        return str(refused)
    except _LetPass:
        pass
    return ""


class _Reader:
    """Walks over an expression once."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        self._names: set[str] = set()

    @property
    def rest(self) -> bool:
        return self._at < len(self._regex)

    def alternatives(self, depth: int) -> None:
        """Read up to the end, or to a parenthesis that closes."""
        if depth > _DEEPEST:
            raise _LetPass
        while self.rest and self._peek() != ")":
            if not self._take("|"):
                self._quantified(depth)

    def _quantified(self, depth: int) -> None:
        character = self._next()
        if character in "?*+":
            raise _Refused(f"a {character} that repeats nothing")
        if character == "(":
            if not self._group(depth):
                return
        elif character == "[":
            self._class(depth)
        elif character == "\\":
            self._escape(in_class=False)
        elif character == "{":
            self._at -= 1
        self._quantifier()

    def _quantifier(self) -> None:
        if self._peek() == "{":
            count = _COUNT.match(self._regex, self._at)
            if count is None:
                raise _Refused("a { that begins no repetition, as {2,3} does; a plain one is \\{")
            least, most = int(count[1]), int(count[3] or (_LARGEST if count[2] else count[1]))
            if not least <= most <= _LARGEST:
                raise _Refused(f"the repetition {count[0]}")
            self._at = count.end()
        elif not (self._take("?") or self._take("*") or self._take("+")):
            return
        _ = self._take("?") or self._take("+")

    def _group(self, depth: int) -> bool:
        """Read a group; False for mere modifiers, which cannot be repeated."""
        if self._take("?") and not self._opening():
            return False
        self.alternatives(depth + 1)
        if not self._take(")"):
            raise _Refused("an unclosed (")
        return True

    def _opening(self) -> bool:
        """What follows `(?`; False where nothing but modifiers stands there."""
        if self._peek() in {":", "=", "!", ">"}:
            self._at += 1
        elif self._regex.startswith(("<=", "<!"), self._at):
            self._at += 2
        elif self._peek() == "<":
            name = self._group_name()
            if name in self._names:
                raise _Refused(f"a second group of the name {name}")
            self._names.add(name)
        else:
            found = _MODIFIERS.match(self._regex, self._at)
            if found is None or set(found[1] + (found[2] or "")) - _FLAGS:
                raise _Refused(f"(?{self._regex[self._at : self._at + 1]}, which Java does not know")
            self._at = found.end()
            return found[3] == ":"
        return True

    def _group_name(self) -> str:
        name = _NAME.match(self._regex, self._at)
        if name is None:
            raise _Refused("a group name that is not <Latin letters and digits>")
        self._at = name.end()
        return name[1]

    def _class(self, depth: int) -> None:
        """Read from behind the [ to behind its ]."""
        if depth > _DEEPEST:
            raise _LetPass
        self._take("^")
        empty = True
        while True:
            if not self.rest:
                raise _Refused("an unclosed [")
            if self._peek() == "]" and not empty:
                self._at += 1
                return
            if self._take("["):
                self._class(depth + 1)
            elif self._regex.startswith("&&", self._at):
                raise _LetPass
            else:
                self._range()
            empty = False

    def _range(self) -> None:
        first = self._member()
        if first is None or self._peek() != "-" or self._regex[self._at + 1 : self._at + 2] in {"[", "]", ""}:
            return
        self._at += 1
        last = self._member()
        if last is None or (first and last and last < first):
            raise _Refused("a range that ends before it begins")

    def _member(self) -> str | None:
        """A character of a class: empty if written as a number, None if it stands for several."""
        character = self._next()
        return self._escape(in_class=True) if character == "\\" else character

    def _escape(self, in_class: bool) -> str | None:
        """Read behind a backslash: the character meant; empty for a number, None for a class or a place."""
        if not self.rest:
            raise _Refused("a \\ at the end")
        character = self._peek()
        for pattern in (_HEXADECIMAL, _OCTAL, _FAMILY, _NAMED_CHARACTER):
            found = pattern.match(self._regex, self._at)
            if found is not None:
                self._at = found.end()
                return None if pattern is _FAMILY else ""
        self._at += 1
        if character == "c" and self.rest:
            self._at += 1
            return ""
        if character == "k" and not in_class:
            if self._group_name() not in self._names:
                raise _Refused("a \\k of a group that is not there")
            return None
        return self._plain_escape(character, in_class)

    def _plain_escape(self, character: str, in_class: bool) -> str | None:
        if character in _CLASSES:
            return None
        if character in _CHARACTERS:
            return ""
        if character in _OUTSIDE_CLASSES and not in_class:
            if character == "b" and self._regex.startswith("{g}", self._at):
                self._at += 3
            return None
        if character.isascii() and character.isalnum():
            raise _Refused(f"the escape \\{character}")
        return character

    def _peek(self) -> str:
        return self._regex[self._at : self._at + 1]

    def _next(self) -> str:
        self._at += 1
        return self._regex[self._at - 1]

    def _take(self, character: str) -> bool:
        taken = self._peek() == character
        self._at += taken
        return taken
