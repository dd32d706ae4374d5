"""The pages of `docs/developers` on adding something, carried out; and what the architecture names."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ovirt_placement import answers
from ovirt_placement.answers import question
from ovirt_placement.cli import main as placement
from ovirt_placement.model import state_file
from ovirt_placement_web.api import description
from tests.builders import APART, cluster, group, host, snapshot, vm
from tests.docs import command_pages, records
from tests.docs.shown import PARSERS
from tests.paths import CHECKOUT

# -- A walk-through is carried out on a copy of the tree, by its page alone. A block of code belongs to the
# file that the paragraph before it names last: in `diff` it changes that in one place, else it is all of it.

#: What a walk-through may change or need.
_PACKAGES = ("service", "placement", "proxy", "enforcer", "simulator")
_FOLDERS = (*_PACKAGES, "plugins", "tests", "tools", "docs")
_BLOCK = re.compile(r"((?:[^\n]+\n)+)\n```(\w+)\n(.*?)```\n", re.DOTALL)
_FILE = re.compile(r"`([\w/.-]+/[\w.-]+\.\w+)`")


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    file: str
    change: bool
    text: str

    def apply(self, tree: Path) -> None:
        """Do to the file what the page says."""
        path = tree / self.file
        if not self.change:
            assert not path.exists(), f"{self.file} is there already"
            path.write_text(self.text, "utf-8")
            return
        old, before, after = path.read_text("utf-8"), self._side("-"), self._side("+")
        assert old.count(before) == 1, f"{self.file} does not have this once:\n{before}"
        path.write_text(old.replace(before, after), "utf-8")

    def _side(self, sign: str) -> str:
        return "".join(line[1:] for line in self.text.splitlines(keepends=True) if line[0] in {" ", sign})


def read(page: str) -> list[Block]:
    """The blocks of `docs/developers/PAGE` that belong to files, in order."""
    text = (CHECKOUT / "docs" / "developers" / page).read_text("utf-8")
    return [
        Block(files[-1], language == "diff", code)
        for paragraph, language, code in _BLOCK.findall(text)
        if (files := _FILE.findall(paragraph))
    ]


def carry_out(blocks: Iterable[Block], tree: Path, wanted: Callable[[Block], bool] = lambda _: True) -> Path:
    """Copy the source to `tree` and do there what the wanted blocks say."""
    for folder in _FOLDERS:
        shutil.copytree(
            CHECKOUT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    shutil.copy(CHECKOUT / "pyproject.toml", tree)
    for block in filter(wanted, blocks):
        block.apply(tree)
    return tree


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy's packages in place of ours."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / package) for package in _PACKAGES)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_tests(tree: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy."""
    return run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


# -- Each page is carried out.
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


@pytest.mark.system
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_adds_is_known_to_all(page: str, tmp_path: Path) -> None:
    blocks, (new, changed, tests) = read(page), PAGES[page]
    assert {block.file for block in blocks if not block.change} == set(new)
    assert {block.file for block in blocks if block.change} == set(changed)
    tree = carry_out(blocks, tmp_path / "tree")
    done = run_tests(tree, *tests)
    assert done.returncode == 0, done.stdout
    for check in (["check"], ["format", "--check"]):
        done = run(tree, "-m", "ruff", *check, *new, *changed)
        assert done.returncode == 0, done.stdout


@pytest.mark.system
@pytest.mark.timeout(300)
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("page", "missed"),
    [
        ("add-a-gate.md", "test_a_vm_that_stays_is_held"),
        ("add-a-rule.md", "test_a_third_vm_is_sent_elsewhere_and_reported_why"),
    ],
)
def test_without_its_line_in_the_catalogue_it_is_missed(page: str, missed: str, tmp_path: Path) -> None:
    tree = carry_out(read(page), tmp_path / "tree", lambda block: not block.change)
    done = run_tests(tree, *PAGES[page][2])
    assert done.returncode == 1, done.stdout
    assert missed in done.stdout


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_kind_of_rule_is_known_by_its_file_alone(tmp_path: Path) -> None:
    blocks = read("add-a-rule.md")
    shown = run(carry_out(blocks, tmp_path / "tree", lambda block: block.file == KIND), "-c", CROWD)
    assert shown.stdout.splitlines() == ["['a', 'b', 'c']", "h1 False host_has_tagged", "h2 True"], (
        shown.stderr
    )


# -- `add-a-question.md`: one file gives command, pages, schema, API, Ansible.
(BLOCK,) = read("add-a-question.md")


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The file stands in the package, and nothing else knows of it."""
    folder = tmp_path_factory.mktemp("answers")
    Path(folder, Path(BLOCK.file).name).write_text(BLOCK.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "__path__", [*answers.__path__, str(folder)])
        answers.summaries.cache_clear()
        patch.setitem(PARSERS, placement.COMMAND, placement._parser())
        yield
    answers.summaries.cache_clear()
    question._KNOWN.pop("ungrouped", None)
    sys.modules.pop("ovirt_placement.answers.ungrouped", None)


@pytest.mark.usefixtures("added")
def test_its_command_answers_about_a_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    both = cluster(), cluster("c2", name="other")
    state = snapshot(*both, host("h"), vm("a", "h"), vm("b", "h"), group("g", APART, "a"))
    file.write_bytes(state_file.dumps(state))
    assert placement.main(["ungrouped", "--state", str(file)]) == 1
    assert capsys.readouterr().out.split() == ["VM", "--", "b"]
    assert placement.main(["ungrouped", "--state", str(file), "--cluster", "other"]) == 0
    assert capsys.readouterr().out == "None.\n"
    assert placement.main(["ungrouped", "--state", str(file), "--json"]) == 1
    assert '"kind": "ungrouped"' in capsys.readouterr().out


@pytest.mark.usefixtures("added")
def test_the_list_of_commands_has_it() -> None:
    assert "VMs that are in no affinity group" in placement._parser(["--help"]).format_help()


@pytest.mark.usefixtures("added")
def test_pages_and_completions_have_it() -> None:
    assert "### ovirt-placement ungrouped" in command_pages.commands_page()
    assert "_shtab_ovirt_placement_ungrouped___cluster_COMPGEN" in command_pages.completion(
        placement.COMMAND, "bash"
    )


@pytest.mark.usefixtures("added")
def test_the_schema_and_the_api_have_it() -> None:
    assert "UngroupedDocument" in {one.__name__ for one in records.documents()}
    (parameter,) = description("")["paths"]["/ungrouped"]["get"]["parameters"]
    assert (parameter["name"], parameter["required"]) == ("cluster", False)


@pytest.mark.usefixtures("added")
def test_ansible_has_a_module_of_it() -> None:
    module = command_pages.modules()["ungrouped_info"]
    compile(module, "ungrouped_info.py", "exec")
    assert 'cluster={"type": "str"}' in module


# -- `architecture.md` names every room of the tree, and nothing that is not there.
PAGE = (CHECKOUT / "docs" / "developers" / "architecture.md").read_text()
COMPONENTS = {
    "ovirt_placement": CHECKOUT / "placement" / "ovirt_placement",
    "ovirt_enforcer": CHECKOUT / "enforcer" / "ovirt_enforcer",
    "ovirt_scheduler_proxy": CHECKOUT / "proxy" / "ovirt_scheduler_proxy",
    "ovirt_placement_web": CHECKOUT / "web" / "ovirt_placement_web",
}
#: Where a path of the page may begin.
ROOTS = (CHECKOUT, *COMPONENTS.values())


def rooms() -> list[str]:
    return sorted(
        folder.name
        for component in COMPONENTS.values()
        for folder in component.iterdir()
        if (folder / "__init__.py").exists()
    )


@pytest.mark.parametrize("room", rooms())
def test_every_room_is_named(room: str) -> None:
    assert re.search(rf"\b{room}\b", PAGE)


def test_every_component_is_named() -> None:
    packages = [path.parent for path in CHECKOUT.glob("*/ovirt_*/__init__.py")]
    assert len(packages) == 6
    for package in packages:
        assert f"{package.parent.name}/" in PAGE
        assert package.name in PAGE


def there(path: str) -> bool:
    return any((root / path).exists() or (root / f"{path}.py").exists() for root in ROOTS)


def test_every_path_is_there() -> None:
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?/?)`", PAGE)
    paths += re.findall(r"^ +([a-z_]+/[a-z_/]+(?:\.py)?)", PAGE, re.MULTILINE)
    assert len(paths) > 30
    assert [path for path in paths if not there(path)] == []
