"""A word that is nearly right is answered with the right one."""

from __future__ import annotations

import pytest

from ovirt_service.arguments import Parser


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
    ],
)
def test_the_nearest_word_is_named(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"{hint}\n")


@pytest.mark.parametrize("words", [["nothing-like-it"], ["plan", "--xyz"], []])
def test_what_is_like_nothing_gets_no_hint(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(words)
    assert "did you mean" not in capsys.readouterr().err
