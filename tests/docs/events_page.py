"""The reference of the events that we add to the engine's log, and of all that the enforcer shows."""

from __future__ import annotations

from ovirt_enforcer.notifications.kinds import ABOUT, COMMON_FACTS, NotificationSettings
from ovirt_placement.engine.writing.events import ORIGIN

HEAD = f"""\
# Reference of events

Made from the code that reports them (`make reference`). An event of ours in the engine's log has the origin
`{ORIGIN}`, and the cluster and the VM that it is about. Besides the kinds below there are warnings of
[groups that a VM lost](enforcer.md#groups-that-vms-lose) and of rules that mean nothing (`ovirt-placement
doctor --event`, once a day and cluster).

## What the enforcer reports

A * marks what is in the engine's log by default; [notifications.md](notifications.md) has the settings.
Every sentence may also use {", ".join(f"`${fact}`" for fact in sorted(COMMON_FACTS))}.
"""


def events_page() -> str:
    by_default = NotificationSettings().engine.kinds
    rows = []
    for kind, about in ABOUT.items():
        more = [f"`${fact}`" for fact in sorted(about.facts) if f"${fact}" not in about.sentence]
        also = f"; also {', '.join(more)}" if more else ""
        marked = "*" if kind in by_default else ""
        rows.append(f"- `{kind}`{marked} ({about.severity}): {about.sentence}{also}")
    return "\n".join([HEAD, *rows, ""])
