"""The language of searches: what binds how, what matches what, and that no text is too odd to be judged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_simulator.http.search.errors import SearchError, SearchFailure
from ovirt_simulator.http.search.expression import Both, Condition, Either, Search
from ovirt_simulator.http.search.objects import OBJECTS
from ovirt_simulator.http.search.parse import parse
from ovirt_simulator.http.search.values import free_text


def test_precedence() -> None:
    a, b, c = (Condition("VM", OBJECTS["VM"].fields["NAME"], "=", value) for value in "abc")
    assert parse("name=a or name=b and name=c", "VM").where == Either(a, Both(b, c))
    assert parse("name=a and name=b or name=c", "VM").where == Either(Both(a, b), c)
    assert parse("name=a name=b or name=c", "VM").where == Both(a, Either(b, c))
    assert parse("", "VM") == Search()
    fields = OBJECTS["VM"].fields
    assert parse('name="x and y" sortby memory desc page 31', "VM") == Search(
        where=Condition("VM", fields["NAME"], "=", "x and y"),
        sort=fields["MEMORY"],
        descending=True,
        page=31,
    )


WORDS = st.text(alphabet="abAB*", min_size=1, max_size=4)


def matches(pattern: str, text: str) -> bool:
    """Say whether a text matches a pattern with `*`, by trying every split: slow and plainly right."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return text[:1].lower() == pattern[0].lower() and matches(pattern[1:], text[1:])


@given(st.text(alphabet="abAB", max_size=5), WORDS, st.sampled_from(["=", "!="]))
def test_free_text_agrees_with_a_slow_judge(text: str, word: str, relation: str) -> None:
    assert free_text(relation, word, False)(text) == (matches(f"*{word}*", text) == (relation == "="))


PIECES = [
    "name",
    "host",
    "hosts",
    ".",
    "=",
    "!=",
    ">",
    " ",
    '"',
    "and",
    "or",
    "web",
    "(",
    "page",
    "1",
    "sortby",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(sorted(OBJECTS)))
def test_any_text_is_a_search_or_an_error(pieces: list[str], searched: str) -> None:
    try:
        parse("".join(pieces), searched)
    except (SearchError, SearchFailure):
        return
