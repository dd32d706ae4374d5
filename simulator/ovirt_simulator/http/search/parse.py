"""From the parts of a search to its meaning: `and` binds closest, then `or`, then standing in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ovirt_simulator.http.search.errors import SearchError, SearchFailure
from ovirt_simulator.http.search.expression import Both, Condition, Either, Expression, Search
from ovirt_simulator.http.search.fields import SearchObject
from ovirt_simulator.http.search.objects import OBJECTS, find
from ovirt_simulator.http.search.scanner import Part, Scanner, Token

_LARGEST = 2**31 - 1


@lru_cache(maxsize=256)
def parse(text: str, searched_name: str) -> Search:
    """Read a search for this object; raise `SearchError` where the engine's own parser gives up.

    Raises `SearchFailure` for what the engine has no join for.
    """
    searched = OBJECTS[searched_name]
    tokens = Scanner(text, searched).scan()
    if tokens[-1].part in (Part.AND, Part.OR):
        raise SearchError("a condition is missing")
    _refuse_what_nothing_joins(tokens, searched)
    texts = {token.part: token.text for token in tokens}
    sort = texts.get(Part.SORT_FIELD)
    return Search(
        where=_where(tokens, searched),
        sort=None if sort is None else searched.fields[sort],
        descending=texts.get(Part.DIRECTION) == "DESC",
        page=_page(texts.get(Part.NUMBER, "1")),
    )


def _refuse_what_nothing_joins(tokens: Sequence[Token], searched: SearchObject) -> None:
    """Refuse plurals that lead to no object (`vnics`), and whatever else a search of instance types names.

    Of events, `host` is joined by a view of its own, of which `hosts` knows nothing.
    """
    for token in tokens:
        if token.part is not Part.OBJECT:
            continue
        if searched.name == "INSTANCETYPE" or find(token.text) is None:
            raise SearchFailure("", 500)
        if (searched.name, token.text) == ("EVENT", "HOSTS"):
            raise SearchFailure('ERROR: missing FROM-clause entry for table "vds_with_tags"')


def _page(number: str) -> int:
    """Give the page, which is the first one unless digits and nothing else say so."""
    return int(number) if number.isdecimal() and int(number) <= _LARGEST else 1


def _where(tokens: Sequence[Token], searched: SearchObject) -> Expression | None:
    operands: list[Expression] = []
    joins: list[Part | None] = []
    for position, token in enumerate(tokens):
        if token.part is Part.VALUE:
            operands.append(_condition(tokens, position, searched))
            joins.append(None)
        elif token.part in (Part.AND, Part.OR):
            joins[-1] = token.part
    for part, pair in ((Part.AND, Both), (Part.OR, Either), (None, Both)):
        operands, joins = _joined(operands, joins, part, pair)
    return operands[0] if operands else None


def _joined(
    operands: list[Expression],
    joins: list[Part | None],
    part: Part | None,
    pair: Callable[[Expression, Expression], Expression],
) -> tuple[list[Expression], list[Part | None]]:
    """Put together what this part joins; `joins` says what follows each operand."""
    found: list[Expression] = []
    left: list[Part | None] = []
    for operand, join in zip(operands, joins, strict=True):
        if found and left[-1] is part:
            found[-1] = pair(found[-1], operand)
            left[-1] = join
        else:
            found.append(operand)
            left.append(join)
    return found, left


def _condition(tokens: Sequence[Token], position: int, searched: SearchObject) -> Expression:
    value = tokens[position].text
    if value.endswith("\\"):
        raise SearchError("a value cannot end with the escape character")
    relation, named = tokens[position - 1], tokens[position - 2]
    if relation.part is not Part.RELATION:
        return Condition(searched.name, None, "=", value)
    if named.part is Part.OBJECT:
        return Condition(_object(named.text).name, None, relation.text, value)
    of = searched
    if tokens[position - 3].part is Part.DOT:
        of = _object(tokens[position - 4].text)
    if of.name == "USER" and named.text == "USRNAME" and "@" in value:
        return _user_name(of, relation.text, value)
    return Condition(of.name, of.fields[named.text], relation.text, value)


def _user_name(of: SearchObject, relation: str, value: str) -> Expression:
    """Compare a name in two parts, as the engine holds it: the name to log in with, and the directory."""
    login, _, directory = value.rpartition("@")
    return Both(
        Condition(of.name, of.fields["LOGIN"], relation, login),
        Condition(of.name, of.fields["DIRECTORY"], relation, directory),
    )


def _object(word: str) -> SearchObject:
    found = find(word)
    if found is None:
        raise ValueError(f"nothing is joined as {word}")
    return found
