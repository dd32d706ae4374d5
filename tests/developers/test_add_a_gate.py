"""`docs/developers/add-a-gate.md`, carried out: its gate closes, by its line in the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import walk_through
from .walk_through import Block

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

PAGE = walk_through.read("add-a-gate.md")
GATE, TEST = "enforcer/ovirt_enforcer/gates/stays.py", "tests/enforcer/gates/test_stays.py"
CATALOGUE = "enforcer/ovirt_enforcer/gates/admission.py"
#: Its own, and those that ask all gates of a cluster with nothing special about it.
TESTS = (
    TEST,
    "tests/enforcer/gates/test_admission.py",
    "tests/enforcer/gates/test_limits.py",
)


def test_the_page_is_one_file_a_line_with_its_import_and_a_test() -> None:
    assert [(block.file, block.change) for block in PAGE] == [
        (GATE, False),
        (CATALOGUE, True),
        (CATALOGUE, True),
        (TEST, False),
    ]


def test_the_gate_of_the_page_closes_and_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree")
    done = walk_through.run_tests(tree, *TESTS)
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_without_its_line_in_the_catalogue_it_is_missed(tmp_path: Path) -> None:
    def no_line(block: Block) -> bool:
        return not block.change

    done = walk_through.run_tests(walk_through.carry_out(PAGE, tmp_path / "tree", no_line), *TESTS)
    assert done.returncode == 1, done.stdout
    assert "test_a_vm_that_stays_is_held" in done.stdout
    assert "test_every_gate_stands_in_the_catalogue_once" in done.stdout
