"""`docs/developers/add-a-question.md`, carried out: one file gives command, pages, schema, API, Ansible."""

import sys
from collections.abc import Iterator
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

from . import walk_through

(BLOCK,) = walk_through.read("add-a-question.md")


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
