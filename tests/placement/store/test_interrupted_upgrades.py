"""An upgrade that fails or is killed leaves all as it was; of several at once one takes place."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from ovirt_placement.store.intents import Store
from ovirt_placement.store.versions import VERSION
from ovirt_service.errors import UserError
from tests.placement.databases import database
from tests.placement.store.former_stores import (
    FORMER,
    as_far_as,
    make_former,
    rows,
    shape,
    upgrade,
    version_of,
    with_todays_names,
    without_engine,
)

EVERY = pytest.mark.parametrize("version", FORMER)


@EVERY
def test_an_upgrade_that_fails_leaves_all_as_it_was(url: str, version: int) -> None:
    make_former(url, version)
    before, shape_before = rows(url, version), shape(url)
    with database(url) as connection:  # in the way of what is made last
        connection.exec_driver_sql("CREATE TABLE ha_announcements (x INTEGER)")
    with pytest.raises(UserError, match="ha_announcements"):
        upgrade(url)
    with database(url) as connection:
        connection.exec_driver_sql("DROP TABLE ha_announcements")
    assert version_of(url) == [version]
    assert (rows(url, version), shape(url)) == (before, shape_before)
    upgrade(url)
    assert version_of(url) == [VERSION]


@pytest.mark.parametrize(
    "last", ["DROP TABLE sticky_copies", "CREATE TABLE memberships", "UPDATE schema_version"]
)
def test_an_upgrade_that_is_killed_leaves_all_as_it_was(url: str, last: str) -> None:
    make_former(url, 3)
    before, shape_before = rows(url, 3), shape(url)
    program = f"""
import os, signal, sqlalchemy
from ovirt_placement.store.intents import Store

def die(connection, cursor, statement, *_):
    if statement.strip().startswith({last!r}):
        os.kill(os.getpid(), signal.SIGKILL)

sqlalchemy.event.listen(sqlalchemy.Engine, "after_cursor_execute", die)
Store({url!r}, engine="default", patience_seconds=30).open_intents()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (rows(url, 3), shape(url)) == (before, shape_before)
    upgrade(url)
    assert version_of(url) == [VERSION]


@pytest.mark.system
@pytest.mark.parametrize("version", [min(FORMER), max(FORMER)])
def test_an_upgrade_may_be_killed_at_any_statement(url: str, version: int) -> None:
    make_former(url, version)
    before, shape_before = rows(url, version), shape(url)
    killed = 0
    while _dies_at(url, killed + 1):
        killed += 1
        done = version_of(url) == [VERSION]
        after = rows(url, version)
        if not done:
            assert (version_of(url), after, shape(url)) == ([version], before, shape_before)
    assert killed > 5
    upgrade(url)
    assert version_of(url) == [VERSION]
    before = with_todays_names(before)
    assert as_far_as(rows(url, version), before) == without_engine(before)


def _dies_at(url: str, number: int) -> bool:
    """Open the store in a process that is killed after this many changes; whether it came so far.

    What only reads leaves all as the change before it did.
    """
    program = f"""
import os, signal, sqlalchemy
from ovirt_placement.store.intents import Store

left = {number}

def die(_connection, _cursor, statement, *_):
    global left
    left -= not statement.lstrip().startswith(("SELECT", "PRAGMA"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

sqlalchemy.event.listen(sqlalchemy.Engine, "after_cursor_execute", die)
Store({url!r}, engine="default", patience_seconds=30).open_intents()
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode != 0


def test_of_several_who_upgrade_at_once_one_does(url: str) -> None:
    make_former(url, 1)
    start = threading.Barrier(4)
    found: list[object] = []

    def come() -> None:
        store = Store(url, engine="default", patience_seconds=30)
        start.wait()
        try:
            found.append([intent.vm for intent in store.open_intents()])
        except UserError as error:
            found.append(error)
        store.close()

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["v3"]] * 4
    assert version_of(url) == [VERSION]
