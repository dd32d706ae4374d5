"""Several engines in one store: each has rows of its own, though the ids are the same."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ovirt_placement import store
from ovirt_placement.model import PlacementKey
from ovirt_placement.store.enforcer.history import HistoryStore, StepOutcome
from ovirt_placement.store.enforcer.intents import ImpossibleTransition, Store
from ovirt_placement.store.keys import KeyChange, KeyStore
from ovirt_placement.store.sql.access import EngineRows, StoreAccess
from ovirt_placement.store.sql.schema import metadata, missing_vms, schema_version
from ovirt_service.errors import UserError
from tests.placement.store.conftest import at_once
from tests.stored import prepared

OURS, THEIRS = "ours", "theirs"
VM = missing_vms.c.vm


def held(rows: EngineRows) -> list[tuple[str, float]]:
    return [tuple(row) for row in rows.execute(rows.select(missing_vms).order_by(VM))]


def test_every_verb_touches_the_rows_of_one_engine_alone(url: str) -> None:
    with ExitStack() as opened:
        ours, theirs = (
            opened.enter_context(closing(StoreAccess(url, engine=engine, patience_seconds=30)))
            for engine in (OURS, THEIRS)
        )
        with theirs._transaction() as rows:
            rows.add_all(missing_vms, [{"vm": vm, "since": 1.0} for vm in ("v1", "v2", "v3")])
        with ours._transaction() as rows:
            assert held(rows) == []
            assert rows.change(missing_vms, VM == "v1", since=2.0) == rows.remove(missing_vms) == 0
            rows.put(missing_vms, {"vm": "v1"}, {"since": 3.0})
            rows.put(missing_vms, {"vm": "v1"}, {"since": 4.0})
            rows.add(missing_vms, {"vm": "v2", "since": 5.0})
            assert rows.change(missing_vms, since=6.0) == 2
            rows.remove_all(VM, ["v2", "v3"])
            assert held(rows) == [("v1", 6.0)]
        with theirs._transaction() as rows:
            assert held(rows) == [("v1", 1.0), ("v2", 1.0), ("v3", 1.0)]


def test_all_statements_are_made_by_these_verbs() -> None:
    """But for what concerns the store as a whole, and an alias, which names the engine itself."""
    whole = {"access.py", "backup.py", "versions.py"}
    made = re.compile(r"(?<![.\w])(?:select|insert|update|delete)\((?!open_steps)")
    files = [file for file in Path(store.__path__[0]).rglob("*.py") if file.name not in whole]
    assert len(files) > 10
    assert [file.name for file in files if made.search(file.read_text())] == []
    assert all("engine" in table.columns for table in metadata.tables.values() if table is not schema_version)


def test_an_intent_is_one_engines_alone_and_so_is_its_step(url: str) -> None:
    wanted = {"vm": "v", "cluster": "c", "source": None, "target": "h", "plan": "p1", "step": 1}
    with closing(Store(url, engine=OURS)) as ours, closing(Store(url, engine=THEIRS)) as theirs:
        intent = prepared(ours, **wanted, correlation_id="same")
        with pytest.raises(ImpossibleTransition, match=f"intent {intent.id} does not exist"):
            theirs.accept(intent.id)
        with pytest.raises(UserError):
            prepared(theirs, **wanted, correlation_id="same")
        theirs.fail(prepared(theirs, **wanted, correlation_id="another").id, "refused")
    with closing(HistoryStore(url, engine=THEIRS)) as history:
        history.record_plan("p1", "c", {"steps": [{}], "remaining": []})
        assert [one.plan for one in history.ended_steps()] == ["p1"]
        history.record_outcome(["another"], StepOutcome(0))
        assert history.ended_steps() == ()


def test_the_first_writers_of_an_engine_come_at_once(url: str) -> None:
    """Its revision is made by the first, and counted up by the others."""
    Store(url, engine=OURS).open_intents()  # makes the tables

    def count(placement: tuple[PlacementKey, ...]) -> KeyChange:
        value = float(placement[0].value) + 1 if placement else 1.0
        return KeyChange(put=(PlacementKey("server", "v1", "system", "GEN", value, 5.0),))

    def come(number: int) -> None:
        with closing(KeyStore(url, engine=THEIRS, patience_seconds=30)) as keys:
            keys.change(count, set_by=f"author{number}")

    assert at_once(6, come) == [None] * 6
    with closing(KeyStore(url, engine=THEIRS)) as found:
        assert [one.key.value for one in found.all_keys()] == [6]
