"""A place in a regular expression, and what is known of what stands before it."""

from __future__ import annotations

import re

#: Deeper nesting is left to Java.
DEEPEST = 100


class Refused(Exception):
    """Java would not compile this; the text says what."""


class LetPass(Exception):
    """Only Java can judge."""


class Cursor:
    """Walks over an expression once."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        #: The names of the groups so far.
        self.names: set[str] = set()
        #: Whether the flag U was set.
        self.flag_u = False

    @property
    def rest(self) -> bool:
        return self._at < len(self._regex)

    def peek(self, ahead: int = 0) -> str:
        """The next character, or one further on; empty behind the end."""
        return self._regex[self._at + ahead : self._at + ahead + 1]

    def next(self) -> str:
        self._at += 1
        return self._regex[self._at - 1]

    def back(self) -> None:
        self._at -= 1

    def take(self, text: str) -> bool:
        """Go past the text if it comes next."""
        taken = self._regex.startswith(text, self._at)
        self._at += len(text) * taken
        return taken

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past what the pattern matches here."""
        found = pattern.match(self._regex, self._at)
        if found is not None:
            self._at = found.end()
        return found
