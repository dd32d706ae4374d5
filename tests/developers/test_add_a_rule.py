"""`docs/developers/add-a-rule.md`, carried out: its rule is known to all by its line in the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import walk_through

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

PAGE = walk_through.read("add-a-rule.md")
RULE = "placement/ovirt_placement/rules/affinity/at_most.py"
CATALOGUE = "placement/ovirt_placement/rules/listed.py"
UNIT = "plugins/at_most.py"
TEST = "tests/placement/rules/affinity/test_at_most.py"


def test_the_page_is_a_rule_a_line_with_its_import_a_unit_and_a_test() -> None:
    assert [(block.file, block.change) for block in PAGE] == [
        (RULE, False),
        (CATALOGUE, True),
        (CATALOGUE, True),
        (UNIT, False),
        (TEST, False),
    ]


def test_the_rule_of_the_page_is_known_to_all(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree")
    done = walk_through.run_tests(tree, TEST, "tests/placement/rules/test_violations.py")
    assert done.returncode == 0, done.stdout


def test_what_the_page_writes_is_as_the_linters_want_it(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree")
    for check in (["check"], ["format", "--check"]):
        done = walk_through.run_ruff(tree, *check, *(block.file for block in PAGE))
        assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_without_its_line_in_the_catalogue_nobody_knows_it(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree", lambda block: block.file != CATALOGUE)
    done = walk_through.run_tests(tree, TEST)
    assert done.returncode == 1, done.stdout
    assert "test_a_third_vm_is_sent_elsewhere_and_reported_why" in done.stdout
