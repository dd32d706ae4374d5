"""go-ovirt, whose readers end at what they do not expect: it sees all that the Python SDK sees."""

from __future__ import annotations

import inspect
import subprocess
from pathlib import Path
from typing import Any

import ovirtsdk4
import pytest

from tests.clients.golang import Go

pytestmark = pytest.mark.nightly

#: How many services are below each other at most, and of how many entries of a list all is read.
DEEPEST, ENTRIES = 5, 4
#: Reading is what logs in, and a log-in is an event.
EVENTS = "/events"


def test_every_list_and_every_entry(installed: Path, engine: str, folder: Path, tmp_path: Path) -> None:
    program, authority = tmp_path / "everything", str(folder / "ca.pem")
    Go(installed).run("build", "-o", str(program), "./everything")
    done = subprocess.run([str(program), engine, authority], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    by_go = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith("/"))
    by_python: dict[str, str] = {}
    with ovirtsdk4.Connection(
        url=engine, username="admin@internal", password="password", ca_file=authority
    ) as connection:
        _walk(connection.system_service(), "", 0, by_python)
    failed = {address for address, seen in by_go.items() if seen.startswith("error")}
    assert failed <= {address for address, seen in by_python.items() if seen == "error"}
    assert all("404" in by_go[address] for address in failed), {one: by_go[one] for one in failed}
    both = {address for address in by_go.keys() & by_python.keys() if not address.startswith(EVENTS)} - failed
    assert {address: by_go[address] for address in both} == {address: by_python[address] for address in both}
    assert len(both) > 200


def _walk(service: Any, address: str, depth: int, seen: dict[str, str]) -> None:
    if depth == DEEPEST:
        return
    ids: list[str] = []
    try:
        if hasattr(service, "list"):
            entries = service.list() or []
            ids = [entry.id for entry in entries[:ENTRIES]]
            seen[address] = str(len(entries))
        elif hasattr(service, "get"):
            service.get()
            seen[address] = "is there"
    except ovirtsdk4.Error:
        seen[address] = "error"
        return
    for name in dir(service):
        if not name.endswith("_service") or name.startswith("_"):
            continue
        method = getattr(service, name)
        if inspect.signature(method).parameters:
            for identity in ids:
                _walk(method(identity), f"{address}/{identity}", depth + 1, seen)
        else:
            below = name.removesuffix("_service").replace("_", "")
            _walk(method(), f"{address}/{below}", depth + 1, seen)
