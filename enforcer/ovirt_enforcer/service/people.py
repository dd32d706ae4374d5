"""Writes to the log and the audit log what people did: commands run on their own, and may not write there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from ovirt_enforcer import audit
from ovirt_placement.store.user_actions import UserAction, UserActionStore

_log = logging.getLogger(__name__)


class PeopleLog:
    """The leader's part of what is recorded of people."""

    def __init__(self, store: UserActionStore) -> None:
        self._store = store

    def look(self) -> None:
        """Log what nobody has logged yet; raises `StoreAway` and `LeaseLost`."""
        with self._store.unlogged() as found:
            for action in found:
                _log.info("%s", action.sentence)
                audit.report("user_action", action.sentence, **_facts(action))


def _facts(action: UserAction) -> dict[str, object]:
    return {
        "action": action.kind,
        "id": action.id,
        "state": action.state,
        "at": datetime.fromtimestamp(action.created, UTC).isoformat(timespec="milliseconds"),
        "login": action.login,
        "machine": action.machine,
        "engine_user": action.engine_user,
        "cluster": action.cluster and {"id": action.cluster, "name": action.cluster_name},
        "plan": action.plan,
        "subject": action.subject,
        "details": action.details,
        "error": action.error,
    }
