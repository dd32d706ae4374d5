"""The pages of `docs/developers` on adding something, carried out: what they write does what they promise."""

from pathlib import Path

import pytest

from . import walk_through

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

GATE_TEST = "tests/enforcer/gates/test_stays.py"
PROCESS_TEST = "tests/enforcer/service/test_process.py"
KIND = "placement/ovirt_placement/rules/placement_rules/tagged.py"
RULE_TEST = "tests/placement/rules/affinity/test_at_most.py"
#: Each page with the files that its blocks are whole (new), or change, and the tests that must pass then:
#: its own, and those that ask all of a kind with nothing special about it.
PAGES = {
    "add-a-gate.md": (
        ("enforcer/ovirt_enforcer/gates/stays.py", GATE_TEST),
        ("enforcer/ovirt_enforcer/gates/admission.py",),
        (GATE_TEST, "tests/enforcer/gates/test_admission.py", "tests/enforcer/gates/test_limits.py"),
    ),
    "add-a-metric.md": (
        (),
        (
            "enforcer/ovirt_enforcer/service/metrics.py",
            "enforcer/ovirt_enforcer/service/recording.py",
            PROCESS_TEST,
        ),
        (f"{PROCESS_TEST}::test_metrics_of_a_repair",),
    ),
    "add-a-rule.md": (
        (KIND, "placement/ovirt_placement/rules/affinity/at_most.py", "plugins/at_most.py", RULE_TEST),
        ("placement/ovirt_placement/rules/rule_list.py",),
        (RULE_TEST, "tests/placement/rules/affinity/test_filters.py"),
    ),
}
#: Three VMs with a tag on one host, of which a rule of the new kind allows two; and where a fourth may start.
CROWD = """
from msgspec.structs import replace
from ovirt_placement.answers.placement import why
from ovirt_placement.rules.catalogue import find_violations
from tests.builders import CLUSTER, host, rule, snapshot, vm

vms = [replace(vm(name, "h1"), tags=("db",)) for name in "abc"] + [replace(vm("new"), tags=("db",))]
asked = rule("few", "tagged_per_host", "tag:db", most=2)
state = snapshot(host("h1"), host("h2"), *vms, asked)
print(*(sorted(one.offenders) for one in find_violations(state, CLUSTER)))
for one in why(state, state.vm_by_id["new"], state.hosts).hosts:
    print(one.host.name, one.accepted, *(reason.kind for reason in one.reasons))
"""


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_adds_is_known_to_all(page: str, tmp_path: Path) -> None:
    blocks, (new, changed, tests) = walk_through.read(page), PAGES[page]
    assert {block.file for block in blocks if not block.change} == set(new)
    assert {block.file for block in blocks if block.change} == set(changed)
    tree = walk_through.carry_out(blocks, tmp_path / "tree")
    done = walk_through.run_tests(tree, *tests)
    assert done.returncode == 0, done.stdout
    for check in (["check"], ["format", "--check"]):
        done = walk_through.run(tree, "-m", "ruff", *check, *new, *changed)
        assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("page", "missed"),
    [
        ("add-a-gate.md", "test_a_vm_that_stays_is_held"),
        ("add-a-rule.md", "test_a_third_vm_is_sent_elsewhere_and_reported_why"),
    ],
)
def test_without_its_line_in_the_catalogue_it_is_missed(page: str, missed: str, tmp_path: Path) -> None:
    tree = walk_through.carry_out(walk_through.read(page), tmp_path / "tree", lambda block: not block.change)
    done = walk_through.run_tests(tree, *PAGES[page][2])
    assert done.returncode == 1, done.stdout
    assert missed in done.stdout


def test_a_kind_of_rule_is_known_by_its_file_alone(tmp_path: Path) -> None:
    blocks = walk_through.read("add-a-rule.md")
    tree = walk_through.carry_out(blocks, tmp_path / "tree", lambda block: block.file == KIND)
    shown = walk_through.run(tree, "-c", CROWD)
    assert shown.stdout.splitlines() == ["['a', 'b', 'c']", "h1 False host_has_tagged", "h2 True"], (
        shown.stderr
    )
