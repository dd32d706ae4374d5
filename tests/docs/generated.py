"""`make reference`: writes the pages that are made from the code; a test shows when they are out of date."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from release import checks
from tests.docs import command_pages, metrics, records
from tests.paths import CHECKOUT

PACKAGING = CHECKOUT / "packaging"
#: A distribution of its own, with files of its own.
SIMULATOR = "ovirt-simulator"
COMMANDS = ("ovirt-placement", "ovirt-enforcer", "ovirt-placement-web", "ovirt-scheduler-proxy", SIMULATOR)


def folder_of(command: str) -> Path:
    """Where the man page and the completions of a command stand."""
    return CHECKOUT / "simulator" if command == SIMULATOR else PACKAGING


PAGES: Mapping[Path, Callable[[], str]] = {
    CHECKOUT / "docs" / "json.schema.json": records.schema_page,
    CHECKOUT / "docs" / "commands.md": command_pages.commands_page,
    CHECKOUT / "docs" / "reference-configuration.md": records.configuration_page,
    CHECKOUT / "docs" / "reference-metrics.md": metrics.metrics_page,
    CHECKOUT / "docs" / "reference-events.md": records.events_page,
    checks.COLLECTION: checks.collection_changelog,
    **{
        PACKAGING / "monitoring" / "dashboards" / name: partial(str, text)
        for name, text in metrics.dashboards().items()
    },
    **{
        PACKAGING / "ansible" / "plugins" / "modules" / f"{name}.py": partial(str, text)
        for name, text in command_pages.modules().items()
    },
    **{folder_of(name) / "man" / f"{name}.1": partial(command_pages.man_page, name) for name in COMMANDS},
    **{
        folder_of(name) / "completions" / shell / form.format(name): partial(
            command_pages.completion, name, shell
        )
        for shell, form in (("bash", "{}"), ("zsh", "_{}"))
        for name in COMMANDS
    },
}

if __name__ == "__main__":
    for page, make in PAGES.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make())
