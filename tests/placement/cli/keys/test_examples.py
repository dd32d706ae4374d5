"""The commented examples under docs/placement-keys/: they print what they say, and can be imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import state_file
from tests.paths import CHECKOUT
from tests.placement.cli.documents import plain
from tests.placement.cli.live_engine import Starting

FOLDER = CHECKOUT / "docs" / "placement-keys"
STATE = FOLDER / "cluster.json"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


def console_examples(example: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands in its comments, each with the lines that follow it."""
    comments = [line[1:].removeprefix(" ") for line in example.read_text().splitlines() if line[:1] == "#"]
    _, *blocks = "\n".join(comments).split("\n$ ")
    for block in blocks:
        command, *output = block.rstrip().splitlines()
        yield command, output


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_comments_show_what_the_commands_print(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    shown = list(console_examples(example))
    assert shown
    for command, output in shown:
        assert main(shlex.split(command)[1:]) == 0
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == output


REFUSED = None

#: Of each example and VM: by host the operator's score and the round, or the customer's score where that
#: is what the example is about; and the hosts to choose from.
SYSTEM: dict[tuple[str, str], tuple[dict[str, tuple[float, int | None]], set[str]]] = {
    ("private-cloud", "app4"): ({"alpha": (50, 5), "delta": (-200, REFUSED)}, {"alpha", "beta", "gamma"}),
    ("private-cloud", "owned"): ({"alpha": (-200, REFUSED), "delta": (100, 1)}, {"delta"}),
    ("private-cloud", "owned-large"): ({"alpha": (-200, REFUSED), "gamma": (-200, REFUSED)}, set()),
    ("licensed-image", "windows"): ({"alpha": (100, 1), "gamma": (-200, REFUSED)}, {"alpha", "beta"}),
    ("licensed-hosts-last", "app4"): ({"alpha": (0, 10), "gamma": (20, 8)}, {"gamma", "delta"}),
    ("storage-island", "mail"): ({"alpha": (0, 10), "gamma": (60, 4)}, {"gamma", "delta"}),
    ("idle-hosts", "app4"): ({"alpha": (100, 1), "beta": (50, 5)}, {"alpha", "gamma"}),
    ("full-hosts-first", "app4"): ({"alpha": (0, 10), "beta": (50, 5)}, {"beta", "delta"}),
    ("noisy-hosts", "app4"): (
        {"alpha": (-100, REFUSED), "beta": (-20, REFUSED), "gamma": (-5, 10), "delta": (0, 10)},
        {"delta"},
    ),
    ("premium-hosts", "fast"): ({"alpha": (100, 1), "beta": (0, 10)}, {"alpha"}),
    ("newer-hardware", "app4"): (
        {"alpha": (0, 10), "beta": (20, 8), "gamma": (40, 6), "delta": (80, 2)},
        {"delta"},
    ),
    ("one-server-weighs-load-more", "app4"): (
        {"alpha": (130, 1), "beta": (65, 3)},
        {"alpha", "gamma", "delta"},
    ),
}
CUSTOMER: dict[tuple[str, str], tuple[dict[str, float], set[str]]] = {
    ("soft-spread", "app4"): ({"beta": -200, "gamma": -100, "alpha": 0}, {"alpha", "delta"}),
    ("soft-pack", "app4"): ({"beta": 200, "gamma": 100, "alpha": 0}, {"beta"}),
    ("mixed-pack-and-spread", "app4"): ({"beta": 20, "gamma": 60, "delta": -40, "alpha": 0}, {"gamma"}),
    ("noisy-hosts", "app4"): ({"gamma": -50, "delta": 0}, {"delta"}),
    ("green-hosts", "app4"): ({"alpha": 50, "beta": 40, "gamma": 25, "delta": 0}, {"alpha"}),
    ("racks", "app4"): ({"alpha": 0, "beta": 50, "gamma": 0, "delta": 0}, {"beta"}),
}


def explained(case: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], set[str]]:
    """What `keys explain` says of each host, and which are chosen from."""
    name, vm = case
    keys = FOLDER / f"{name}.yaml"
    assert main(["keys", "explain", vm, "--state", str(STATE), "--keys", str(keys), "--json"]) == 0
    answer = plain(capsys.readouterr().out)
    return {one["host"]: one for one in answer["hosts"]}, set(answer["choice"])


@pytest.mark.parametrize("case", SYSTEM, ids="-".join)
def test_operators_scores_and_rounds_are_those_promised(
    case: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, choice = SYSTEM[case]
    hosts, chosen = explained(case, capsys)
    assert {host: (hosts[host]["system"]["total"], hosts[host]["round"]) for host in wanted} == wanted
    assert chosen == choice


@pytest.mark.parametrize("case", CUSTOMER, ids="-".join)
def test_customers_scores_are_those_promised(
    case: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, choice = CUSTOMER[case]
    hosts, chosen = explained(case, capsys)
    assert {host: hosts[host]["customer"]["total"] for host in wanted} == wanted
    assert chosen == choice


def test_every_example_has_its_numbers() -> None:
    assert {example.stem for example in EXAMPLES} == {name for name, _ in (*SYSTEM, *CUSTOMER)}


@pytest.mark.system
def test_every_example_can_be_imported_and_has_no_mistakes(serving: Starting) -> None:
    with serving(state_file.load(STATE)) as live:
        for example in EXAMPLES:
            live.run(0, "keys", "import", str(example), "--replace")
            live.run(0, "keys", "check")
