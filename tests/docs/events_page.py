"""The reference of the events that we add to the engine's log, and of all that the enforcer shows."""

from __future__ import annotations

from ovirt_enforcer.notifications.kinds import ABOUT, COMMON_FACTS
from ovirt_enforcer.notifications.settings import NotificationSettings
from ovirt_placement.engine.writing.events import ORIGIN

#: Who shows, of what, with which severity, and what makes the number.
SOURCES = (
    (
        "`ovirt-enforcer run`",
        "the kinds below, as far as `[enforcer.notifications.engine]` names them",
        "as below",
        "drawn at random",
    ),
    (
        "`ovirt-enforcer run`",
        "[groups that a VM lost](enforcer.md#groups-that-vms-lose) with its cluster",
        "warning",
        "made of VM, cluster and time",
    ),
    (
        "`ovirt-placement doctor --event`",
        "rules that mean nothing, once a day and cluster",
        "warning",
        "made of day, cluster and text",
    ),
)
ROWS = "\n".join(f"| {' | '.join(source)} |" for source in SOURCES)

HEAD = f"""\
# Reference of events

Made from the code that reports them (`make reference`). An event of ours in the engine's log has the origin
`{ORIGIN}`, and stands with the cluster and the VM that it is about. The engine takes each number
(`custom_id`) once, for ever, so the same event is never there twice.

| reported by | of what | severity | number |
| --- | --- | --- | --- |
{ROWS}

## What the enforcer reports

Who is notified of what, and in which words, is configured: [notifications.md](notifications.md). Every
sentence may also speak of {", ".join(f"`${fact}`" for fact in sorted(COMMON_FACTS))}.
"""


def events_page() -> str:
    by_default = NotificationSettings().engine.kinds
    rows = [
        f"| `{kind}` | {about.severity} | {'yes' if kind in by_default else 'no'} | {about.sentence} |"
        f" {', '.join(f'`{fact}`' for fact in sorted(about.facts))} |"
        for kind, about in ABOUT.items()
    ]
    head = (
        "| kind | severity | in the engine's log by default | sentence | facts |",
        "| --- | --- | --- | --- | --- |",
    )
    return "\n".join([HEAD, *head, *rows, ""])
