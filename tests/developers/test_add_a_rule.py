"""`docs/developers/add-a-rule.md`, carried out: its rule is known to all by its line in the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import walk_through

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

PAGE = walk_through.read("add-a-rule.md")
KIND = "placement/ovirt_placement/rules/placement_rules/tagged.py"
RULE = "placement/ovirt_placement/rules/affinity/at_most.py"
CATALOGUE = "placement/ovirt_placement/rules/listed.py"
UNIT = "plugins/at_most.py"
TEST = "tests/placement/rules/affinity/test_at_most.py"
#: Three VMs with a tag on one host, of which a rule of the new kind allows two; and where a fourth may start.
CROWD = """
from msgspec.structs import replace
from ovirt_placement.answers.placement import why
from ovirt_placement.rules.violations import find_violations
from tests.builders import CLUSTER, host, rule, snapshot, vm

vms = [replace(vm(name, "h1"), tags=("db",)) for name in "abc"] + [replace(vm("new"), tags=("db",))]
asked = rule("few", "tagged_per_host", "tag:db", most=2)
state = snapshot(host("h1"), host("h2"), *vms, asked)
print(*(sorted(one.offenders) for one in find_violations(state, CLUSTER)))
for one in why(state, state.vm_by_id["new"], state.hosts).hosts:
    print(one.host.name, one.accepted, *(reason.kind for reason in one.reasons))
"""


def test_the_page_is_a_kind_and_a_rule_a_line_with_its_import_a_unit_and_a_test() -> None:
    assert [(block.file, block.change) for block in PAGE] == [
        (KIND, False),
        (RULE, False),
        (CATALOGUE, True),
        (CATALOGUE, True),
        (UNIT, False),
        (TEST, False),
    ]


def test_the_kind_of_the_page_is_known_by_its_file_alone(tmp_path: Path) -> None:
    tree = walk_through.carry_out(PAGE, tmp_path / "tree", lambda block: block.file == KIND)
    shown = walk_through.run_python(tree, CROWD)
    assert shown.splitlines() == ["['a', 'b', 'c']", "h1 False host_has_tagged", "h2 True"]


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
