"""The pages of the enforcer name all that there is: every key, gate, metric and command."""

from __future__ import annotations

import re

import msgspec
import pytest

from ovirt_enforcer.cli import main
from ovirt_enforcer.gates.catalogue import GATES
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.settings import EnforcerSettings
from tests.paths import CHECKOUT

FOLDER = CHECKOUT / "docs" / "enforcer"
ALL_PAGES = "\n".join(page.read_text() for page in (CHECKOUT / "docs" / "enforcer.md", *FOLDER.glob("*.md")))
#: Rows of tables: the first cell, and the second.
ROW = re.compile(r"^\| (.*?) \| (.*?) \|", re.MULTILINE)


def rows(page: str) -> dict[str, str]:
    """Words in code in the first cells of a page's tables, with what stands next to them."""
    found = ROW.findall((FOLDER / page).read_text())
    return {word: alongside for cell, alongside in found for word in re.findall(r"`(\w+)[`{]", cell)}


def as_documented(default: object) -> str:
    """A default as the page has it."""
    if isinstance(default, msgspec.Struct):
        return "a section"
    if default is None or (default not in ("", False) and not default):
        return "none"
    if isinstance(default, float | int) and not isinstance(default, bool):
        return f"{default:g}"
    text = msgspec.json.encode(default).decode()
    return f"`{text}`"


@pytest.mark.parametrize("field", msgspec.structs.fields(EnforcerSettings), ids=lambda field: field.name)
def test_every_key_stands_in_the_table_with_its_default(field: msgspec.structs.FieldInfo) -> None:
    assert rows("settings.md")[field.name] == as_documented(getattr(EnforcerSettings(), field.name))


def test_no_key_stands_there_that_is_none() -> None:
    assert rows("settings.md").keys() == {field.name for field in msgspec.structs.fields(EnforcerSettings)}


def test_every_gate_has_its_row() -> None:
    assert rows("gates.md").keys() >= {gate.name for gate in GATES}


def test_every_metric_has_its_row() -> None:
    families = {family.name: family.type for family in EnforcerMetrics().registry.collect()}
    ours = {
        name.removeprefix("ovirt_placement_enforcer_") + ("_total" if kind == "counter" else "")
        for name, kind in families.items()
        if name.startswith("ovirt_placement_enforcer_")
    }
    assert len(ours) > 10
    assert ours - rows("history.md").keys() == set()


def test_every_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    commands = re.findall(r"^    ([a-z][a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 8
    assert [command for command in commands if f"ovirt-enforcer {command}" not in ALL_PAGES] == []
