"""Splits a search into its parts as the engine does: letter by letter, taking the first word that fits.

The engine reads no further than it must. `and` ends behind its last letter, so `name=a andname=b` is two
conditions, and `name=a origin=b` has an `or` in it. Whatever is no word that may stand there is free text.
Source: the engine's `SyntaxChecker.analyzeSyntaxState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

import msgspec

from ovirt_simulator.http.search import values
from ovirt_simulator.http.search.errors import SearchError
from ovirt_simulator.http.search.fields import Field, SearchObject
from ovirt_simulator.http.search.objects import COMPLETED_OBJECTS, find


class Part(Enum):
    """The kinds of parts; after each one, others may come."""

    START = auto()
    OBJECT = auto()
    DOT = auto()
    FIELD = auto()
    RELATION = auto()
    VALUE = auto()
    AND = auto()
    OR = auto()
    SORTBY = auto()
    SORT_FIELD = auto()
    DIRECTION = auto()
    PAGE = auto()
    NUMBER = auto()


class Token(msgspec.Struct, frozen=True):
    part: Part
    text: str = ""


_KEYWORDS = {"AND": Part.AND, "OR": Part.OR, "SORTBY": Part.SORTBY, "PAGE": Part.PAGE}
_FIRST_KEYWORDS = {"SORTBY": Part.SORTBY, "PAGE": Part.PAGE}
_FORBIDDEN = "';"
#: Behind these, blanks are part of what is read; elsewhere they are skipped one by one.
_WITH_BLANKS = {Part.START, Part.RELATION, Part.VALUE, Part.AND, Part.OR}
_TEXT_RELATIONS = ("=", "!=")
#: What Java trims from a text, and what its regular expressions take for blanks: none beyond ASCII.
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
_BLANKS = frozenset(" \t\n\v\f\r")


def _starts(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:length] for word in words for length in range(1, len(word) + 1))


_STARTS = _starts([*COMPLETED_OBJECTS, "SORTBY", "AND", "OR"])


class Scanner:
    """One pass over a search; `tokens` holds what it is made of."""

    def __init__(self, text: str, searched: SearchObject) -> None:
        self.tokens = [Token(Part.START)]
        #: Whether a search may end here.
        self._valid = True
        self._text = text
        self._searched = searched
        self._fields = searched.fields
        self._field_starts = _visible_starts(searched)
        self._free_texts: set[str] = set()
        self._begin = self._at = 0
        self._steps: dict[Part, Callable[[], None]] = {
            Part.START: self._first,
            Part.OBJECT: self._behind_object,
            Part.DOT: self._behind_dot,
            Part.FIELD: self._behind_field,
            Part.RELATION: self._behind_relation,
            Part.VALUE: self._behind_value,
            Part.AND: self._behind_and,
            Part.OR: self._behind_and,
            Part.SORTBY: self._behind_sortby,
            Part.SORT_FIELD: self._behind_sort_field,
            Part.DIRECTION: self._behind_direction,
            Part.PAGE: self._behind_page,
            Part.NUMBER: self._behind_number,
        }

    def scan(self) -> list[Token]:
        """Read to the end; raise `SearchError` where the engine gives up."""
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter in _FORBIDDEN:
                raise SearchError(f"{letter} may not stand in a search")
            if letter == " " and self._part not in _WITH_BLANKS:
                self._begin += 1
            else:
                self._steps[self._part]()
            self._at += 1
        if not self._valid:
            raise SearchError("the search ends too early")
        return self.tokens

    @property
    def _part(self) -> Part:
        return self.tokens[-1].part

    @property
    def _word(self) -> str:
        return self._text[self._begin : self._at + 1].upper()

    @property
    def _longer_word(self) -> str:
        """The word with one letter more; empty at the end."""
        return self._text[self._begin : self._at + 2].upper() if self._at + 1 < len(self._text) else ""

    def _take(self, part: Part, text: str) -> None:
        self.tokens.append(Token(part, text))
        self._begin = self._at + 1

    def _refuse_unless(self, allowed: bool) -> None:
        if not allowed:
            raise SearchError(f"unexpected {self._text[self._begin :]!r}")

    def _first(self) -> None:
        """Read at the start: a field counts only if it ends there, so that free text may begin like one."""
        word = self._word
        following = self._text[self._at + 1 : self._at + 2]
        if word in self._fields:
            if following and following in " !=<>":
                self._take(Part.FIELD, word)
            self._valid = False
        elif not self._take_word(word, _FIRST_KEYWORDS) and self._take_value():
            self._free_texts.add(self._searched.name)

    def _behind_and(self) -> None:
        word = self._word
        if word in self._fields:
            self._take(Part.FIELD, word)
            self._valid = False
        elif not self._take_word(word, {}):
            self._take_free_text()

    def _behind_value(self) -> None:
        word = self._word.strip(_TRIMMED)
        if not word:
            return
        if word in self._fields:
            self._take(Part.FIELD, word)
            self._valid = False
        elif self._take_word(word, _KEYWORDS):
            return
        elif word in self._field_starts or word in _STARTS:
            self._valid = False
        else:
            self._take_free_text()

    def _take_word(self, word: str, keywords: dict[str, Part]) -> bool:
        """Take a keyword or an object, if the word is one."""
        if word in keywords:
            self._take(keywords[word], word)
        elif word in self._searched.references:
            if self._text[self._at + 1 : self._at + 2].upper() == "S":
                self._at += 1
                word += "S"
            self._take(Part.OBJECT, word)
        else:
            return False
        self._valid = False
        return True

    def _take_free_text(self) -> None:
        self._valid = False
        if self._take_value():
            self._once(self._searched.name)

    def _once(self, name: str) -> None:
        """Refuse a second free text for the same object."""
        self._refuse_unless(name not in self._free_texts)
        self._free_texts.add(name)

    def _behind_object(self) -> None:
        word = self._word
        if word == ".":
            self._take(Part.DOT, word)
        elif self._longer_word in _TEXT_RELATIONS:
            return
        elif word in _TEXT_RELATIONS:
            self._take(Part.RELATION, word)
        else:
            self._refuse_unless(word == "!")

    def _behind_dot(self) -> None:
        named = find(self.tokens[-2].text)
        self._refuse_unless(named is not None)
        self._take_or_wait(Part.FIELD, named or self._searched)

    def _behind_sortby(self) -> None:
        self._take_or_wait(Part.SORT_FIELD, self._searched)
        self._valid = self._valid or self._part is Part.SORT_FIELD

    def _take_or_wait(self, part: Part, of: SearchObject) -> None:
        word = self._word
        if word in of.fields:
            self._take(part, word)
        else:
            self._refuse_unless(word in _visible_starts(of))

    def _behind_field(self) -> None:
        relations = self._compared().relations
        self._refuse_unless(relations is not None)
        allowed = relations or frozenset()
        self._valid = False
        if self._longer_word in allowed:
            return
        word = self._word
        if word in allowed:
            self._take(Part.RELATION, word)
        self._refuse_unless(word in _starts(allowed))
        self._begin = self._at + 1

    def _compared(self) -> Field:
        """Give the field that was named last, of the object before its dot if there is one."""
        last = len(self.tokens) - 1
        position = next(index for index in range(last, -1, -1) if self.tokens[index].part is Part.FIELD)
        of = self._searched
        if self.tokens[position - 1].part is Part.DOT:
            of = find(self.tokens[position - 2].text) or of
        return of.fields[self.tokens[position].text]

    def _behind_relation(self) -> None:
        of_field = self.tokens[-2].part is Part.FIELD
        if self._take_value(self._compared() if of_field else None) and not of_field:
            named = find(self.tokens[-3].text)
            self._once(self.tokens[-3].text if named is None else named.name)

    def _take_value(self, field: Field | None = None) -> bool:
        """Read on in a value: up to a blank or the end, or the closing quote; say whether it ended."""
        raw = self._text[self._begin : self._at + 1]
        quoted = '"' in raw[:-1]
        if raw[-1] == '"':
            if not quoted:
                self._refuse_unless(raw.lstrip("".join(_BLANKS)) == '"')
                return False
            raw = raw.strip('"')
        elif quoted or (raw[-1] != " " and self._at + 1 < len(self._text)):
            return False
        else:
            raw = raw.strip(_TRIMMED)
            if not raw or not _BLANKS.isdisjoint(raw):
                self._begin = self._at + 1
                return False
        if field is not None and not values.fits(field, raw):
            raise SearchError(f"{raw!r} is no {field.name}")
        self._take(Part.VALUE, raw)
        self._valid = True
        return True

    def _behind_sort_field(self) -> None:
        word = self._word
        if word in ("ASC", "DESC"):
            self._take(Part.DIRECTION, word)
        else:
            self._refuse_unless(word in _starts(["ASC", "DESC"]))

    def _behind_direction(self) -> None:
        word = self._word
        if word == "PAGE":
            self._take(Part.PAGE, word)
        else:
            self._refuse_unless(word in _starts(["PAGE"]))

    def _behind_page(self) -> None:
        """Take the digits, and what follows them: a blank behind a page makes it the first one."""
        digits = self._text[self._at :]
        length = next((place for place, letter in enumerate(digits) if not letter.isdigit()), len(digits))
        self._refuse_unless(length > 0)
        number = digits[: length + 1].upper()
        self._at += len(number) - 1
        self._take(Part.NUMBER, number)
        self._at += length < len(digits)
        self._valid = True

    def _behind_number(self) -> None:
        self._refuse_unless(False)


def _visible_starts(of: SearchObject) -> frozenset[str]:
    return _starts(field.name for field in of.fields.values() if not field.hidden)
