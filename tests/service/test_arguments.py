"""A word that is nearly right is answered with the right one; a mistake in a file is named by its path."""

from argparse import Namespace
from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest

from ovirt_service.arguments import Parser
from ovirt_service.decoding import complaint, nearest
from tests.docs.shown import PARSERS, subcommands


def parser() -> Parser:
    made = Parser(prog="command")
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    plan = commands.add_parser("plan")
    plan.add_argument("--cluster")
    plan.add_argument("--strategy", choices=("optimal", "greedy"))
    commands.add_parser("history").add_argument("--since")
    return made


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["plna"], '; did you mean "plan"?'),
        (["histroy"], '; did you mean "history"?'),
        (["plan", "--clutser", "blue"], '; did you mean "--cluster"?'),
        (["plan", "--clutser=blue"], '; did you mean "--cluster"?'),
        (["plan", "--strategy", "gredy"], '; did you mean "greedy"?'),
        (["history", "--cluster", "blue"], "; it is an option of other commands"),
    ],
)
def test_the_nearest_word_is_named(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"{hint}\n")


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("web7", ("web1", "web6", "web70", "web700"), '"web6"'),
        ("web1999", ("web1", "web1000"), '"web1000"'),
        ("web01", ("web1", "web2"), '"web1"'),
        ("node-12.prod", ("node-1.prod", "node-2.prod"), '"node-2.prod"'),
        ("wbe2", ("web1", "web2"), '"web2"'),
        ("12", ("11", "web12"), '"11"'),
        pytest.param("db-11", ("db-1", "db-2", "db-3"), '"db-1" or "db-3"', id="a key struck twice"),
        pytest.param("node33", ("node3", "node6"), '"node3" or "node6"', id="again"),
        pytest.param("wweb", ("web", "wwwb"), '"web"', id="a letter struck twice"),
        pytest.param("Web1", ("web1", "web2", "Web2"), '"web1"', id="another case"),
    ],
)
def test_of_numbered_names_the_nearest_number_is_meant_and_likely_slips_come_first(
    name: str, known: tuple[str, ...], meant: str
) -> None:
    assert nearest(name, known) == f"; did you mean {meant}?"
    # Of two that are as near, the order is that of the names.
    assert " or " in meant or nearest(name, known[::-1]) == f"; did you mean {meant}?"


@pytest.mark.parametrize("words", [["nothing-like-it"], ["plan", "--xyz"], []])
def test_what_is_like_nothing_gets_no_hint(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert "did you mean" not in capsys.readouterr().err


def test_an_option_of_several_values_may_be_repeated() -> None:
    made = Parser(prog="command")
    add = made.add_subparsers(required=True).add_parser("add")
    add.add_argument("names", nargs="*")
    add.add_argument("--vms", nargs="+")
    add.add_mutually_exclusive_group().add_argument("--hosts", nargs="+", default=["h"])
    add.add_argument("--cluster")
    assert made.parse_args(
        ["add", "a", "b", "--vms", "q1", "--vms", "q2", "q3", "--hosts", "x", "--hosts", "y"]
    ) == Namespace(names=["a", "b"], vms=["q1", "q2", "q3"], hosts=["x", "y"], cluster=None)
    assert made.parse_args(["add", "--cluster", "c", "--cluster", "d"]) == Namespace(
        names=[], vms=None, hosts=["h"], cluster="d"
    )


def test_no_command_forgets_what_was_given_before() -> None:
    """Each option of each command that takes several values, given twice."""
    tried = 0
    for parser in (leaf for root in PARSERS.values() for leaf in subcommands(root)):
        for action in parser._actions:
            if action.option_strings and action.nargs in ("+", "*"):
                found = Namespace(**{action.dest: action.default})
                kind = action.type if callable(action.type) else str
                for word in ("one", "two"):
                    action(parser, found, [kind(word)], action.option_strings[0])
                assert len(getattr(found, action.dest)) == 2, (parser.prog, action.option_strings)
                tried += 1
    assert tried >= 6


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    colour: Colour = Colour.RED
    size: Literal["small", "large"] = "small"


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    empty: Empty = Empty()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "count: is missing"),
        ({"count": "x"}, "count: expected a whole number, not text"),
        ({"count": 1, "inner": 2}, "inner: expected an object, not a whole number"),
        ({"count": 1, "iner": {}}, 'iner: unknown key; did you mean "inner"?'),
        ({"count": 1, "zzz": {}}, "zzz: unknown key; known are count, inner, many, named, empty"),
        ({"count": 1, "empty": {"zzz": 1}}, "empty.zzz: unknown key"),
        ({"count": 1, "many": [{}, {"sise": 1}]}, 'many[1].sise: unknown key; did you mean "size"?'),
        ({"count": 1, "named": {"x": {"sise": 1}}}, 'named[...].sise: unknown key; did you mean "size"?'),
        (
            {"count": 1, "inner": {"colour": "gren"}},
            'inner.colour: cannot be "gren"; one of red, green; did you mean "green"?',
        ),
        ({"count": 1, "many": [{"size": "huge"}]}, 'many[0].size: cannot be "huge"; one of small, large'),
    ],
)
def test_mistakes_are_named(document: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        msgspec.convert(document, Outer)
    assert complaint(refusal.value, Outer) == said
