"""`make reference`: writes the pages that are made from the code; a test tells when they are out of date."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ovirt_placement.answers.documents import catalogue
from tests.docs import command_pages
from tests.paths import CHECKOUT


def schema() -> str:
    """The JSON Schema of all answers."""
    return json.dumps(catalogue.schema(), indent=2) + "\n"


PACKAGING = CHECKOUT / "packaging"
COMMANDS = ("ovirt-placement", "ovirt-enforcer", "ovirt-scheduler-proxy")

PAGES: Mapping[Path, Callable[[], str]] = {
    CHECKOUT / "docs" / "json.schema.json": schema,
    CHECKOUT / "docs" / "commands.md": command_pages.commands_page,
    **{PACKAGING / "man" / f"{name}.1": partial(command_pages.man_page, name) for name in COMMANDS},
    **{
        PACKAGING / "completions" / shell / form.format(name): partial(command_pages.completion, name, shell)
        for shell, form in (("bash", "{}"), ("zsh", "_{}"))
        for name in COMMANDS
    },
}

if __name__ == "__main__":
    for page, make in PAGES.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make())
