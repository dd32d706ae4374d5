"""The engine's search language: conditions, and/or, brackets, sortby, page."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec


class SearchError(ValueError):
    """A search that is not one; the engine answers it with 200 and an empty list."""


class Condition(msgspec.Struct, frozen=True):
    """One comparison, `name=web*`; without a field, words that any text field may contain."""

    field: str | None
    operator: str
    value: str


class Both(msgspec.Struct, frozen=True):
    left: Expression
    right: Expression


class Either(msgspec.Struct, frozen=True):
    left: Expression
    right: Expression


Expression: TypeAlias = "Condition | Both | Either"


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed search; `where` is None when it asks for all."""

    where: Expression | None = None
    sort: str | None = None
    descending: bool = False
    #: Counted from 1.
    page: int = 1


class _Token(msgspec.Struct, frozen=True):
    text: str
    quoted: bool = False

    def word(self) -> str:
        return "" if self.quoted else self.text.lower()


_TOKENS = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<sign>!=|<=|>=|[=<>()])|(?P<word>[^\s=<>!()"]+))')
_OPERATORS = {"=", "!=", "<", ">", "<=", ">="}


def parse(search: str) -> Search:
    """Parse a search; raise `SearchError` where the engine's own parser gives up."""
    return _Parser(_tokens(search)).search()


def _tokens(search: str) -> list[_Token]:
    tokens, position = [], 0
    search = search.rstrip()
    while position < len(search):
        found = _TOKENS.match(search, position)
        if found is None:
            raise SearchError(f"unexpected {search[position:]!r}")
        quoted = found["quoted"]
        tokens.append(_Token(quoted, quoted=True) if quoted is not None else _Token(found[0].strip()))
        position = found.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens; `and` binds closer than `or`."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def search(self) -> Search:
        where = None if self._at("sortby", "page", "") else self._either()
        sort, descending, page = None, False, 1
        if self._take("sortby"):
            sort = self._value().lower()
            descending = self._take("desc")
            if not descending:
                self._take("asc")
        if self._take("page"):
            page = self._number()
        if not self._at(""):
            raise SearchError(f"unexpected {self._tokens[self._next].text!r}")
        return Search(where=where, sort=sort, descending=descending, page=page)

    def _either(self) -> Expression:
        left = self._both()
        while self._take("or"):
            left = Either(left, self._both())
        return left

    def _both(self) -> Expression:
        left = self._operand()
        while self._take("and"):
            left = Both(left, self._operand())
        return left

    def _operand(self) -> Expression:
        if self._take("("):
            inside = self._either()
            if not self._take(")"):
                raise SearchError("a bracket is not closed")
            return inside
        return self._condition()

    def _condition(self) -> Condition:
        first = self._token()
        operator = self._tokens[self._next].word() if self._next < len(self._tokens) else ""
        if operator not in _OPERATORS:
            return Condition(None, "=", first.text)
        self._next += 1
        if first.quoted:
            raise SearchError(f"{first.text!r} is no field")
        return Condition(first.text.lower(), operator, self._value())

    def _value(self) -> str:
        return self._token().text

    def _token(self) -> _Token:
        if self._next == len(self._tokens) or self._tokens[self._next].word() in (
            *_OPERATORS,
            "(",
            ")",
            "and",
            "or",
        ):
            raise SearchError("a field or value is missing")
        self._next += 1
        return self._tokens[self._next - 1]

    def _number(self) -> int:
        value = self._value()
        if not value.isdecimal() or int(value) < 1:
            raise SearchError(f"page {value!r} is no number")
        return int(value)

    def _at(self, *words: str) -> bool:
        """Whether one of these comes next; an empty word is the end."""
        if self._next == len(self._tokens):
            return "" in words
        token = self._tokens[self._next]
        return not token.quoted and token.word() in words

    def _take(self, word: str) -> bool:
        if self._at(word):
            self._next += 1
            return True
        return False
