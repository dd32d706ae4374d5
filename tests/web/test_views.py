"""What views show, held against what commands print of the same state."""

import json
from pathlib import Path

import msgspec
import pytest

from ovirt_placement.answers.plans import plans_record
from ovirt_placement.cli.main import main as placement
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from tests.builders import cluster
from tests.web.conftest import STATE
from tests.web.running import Page

#: By address below `/api/v1`, the command that prints the same document.
COMMANDS = {
    "violations": ["violations"],
    "conflicts": ["conflicts"],
    "groups": ["groups", "list"],
    "vms/db-1/why": ["why", "db-1"],
    "vms/too-large/why": ["why", "too-large"],
    "vms/db-1/where": ["where", "db-1"],
    "vms/db-1/keys": ["keys", "show", "db-1"],
    "hosts/alpha/keys": ["keys", "show", "alpha"],
    "ha-check?cluster=c1": ["ha-check", "--cluster", "c1", "--steps", "20000"],
    "ha-check?cluster=c1&hosts=alpha,beta": ["ha-check", "--cluster", "c1", "--hosts", "alpha,beta"],
    "keys": ["keys", "list"],
}


@pytest.mark.parametrize("address", COMMANDS)
def test_programs_get_the_document_that_a_command_prints(
    page: Page, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with page.store(Store) as store:
        store.open_intents()  # makes it, for the command about keys
    placement([*COMMANDS[address], "--json", "--config", str(page.folder / "placement.toml")])
    printed = json.loads(capsys.readouterr().out)
    answer = page.ask(f"/api/v1/{address}", cookie=page.session())
    assert answer.status == 200
    assert json.loads(answer.text) == printed


def test_programs_need_a_token_of_an_administrator(page: Page) -> None:
    admin = page.server.tokens.log_in("admin@internal", "password")
    user = page.server.tokens.log_in("user@internal", "password")
    assert page.ask("/api/v1/status", Authorization=f"Bearer {admin}").status == 200
    assert page.ask("/api/v1/status", Authorization=f"Bearer {user}").status == 403
    assert page.ask("/api/v1/status", Authorization="Bearer wrong").status == 401
    assert page.ask("/api/v1/status").status == 401


def test_clusters_are_shown_with_what_is_free_and_how_many_failures_they_survive(page: Page) -> None:
    cookie = page.session()
    clusters = json.loads(page.ask("/api/v1/status", cookie=cookie).text)["clusters"]
    shown = page.ask("/", cookie=cookie).text
    for one in clusters:
        free = 100 * one["memory_free_mb"] / one["memory_mb"]
        amounts = [
            f"{one[key] / 1024:.1f}".removesuffix(".0") + " GiB" for key in ("memory_free_mb", "memory_mb")
        ]
        assert f'width="{100 - free:.1f}" height="5"' in shown
        assert f"{amounts[0]} free of {amounts[1]}" in shown
        assert f"{one['cpu_percent']:.0f} %</td>" in shown
    assert [one["failures_survived"] for one in clusters] == [0, None]
    assert "0 failed hosts</a>, 2 HA VMs" in shown
    assert "not reserved" in shown


def test_the_portals_token_begins_a_session(page: Page) -> None:
    token = page.server.tokens.log_in("admin@internal", "password")
    answer = page.ask("/log-in/token", form={"token": token, "next": "/ovirt-placement/vm/a"})
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/vm/a")
    assert page.ask("/", cookie=answer.cookie).status == 200
    assert page.ask("/log-in/token", form={"token": "wrong"}).status == 401


def test_a_vm_that_starts_nowhere_shows_what_each_host_lacks(page: Page) -> None:
    text = page.ask("/vm/big", cookie=page.session()).text
    assert "None of 2 hosts accepts too-large" in text
    assert text.count("needs") >= 2 or text.count("memory") >= 2


def test_what_was_decided_is_shown_with_what_came_of_it(page: Page) -> None:
    state = msgspec.structs.replace(STATE, clusters=(cluster("c1"), cluster("c2")))
    document = msgspec.to_builtins(plans_record([make_plan(state, "c1")], state))
    with page.store(HistoryStore) as store:
        store.record_plan("0123456789abcdef", "c1", next(iter(document["clusters"])))
        store.record_held("0123456789abcdef", {1: ("windows", "no window is open")})
    cookie = page.session()
    for view in ("/history", "/vm/a", "/history?q=databases&days=7"):
        text = page.ask(view, cookie=cookie).text
        assert "0123456789ab" in text, view
        assert "no window is open" in text
    assert "0123456789ab" not in page.ask("/history?q=nothing", cookie=cookie).text


@pytest.mark.system
def test_the_doctor_looks_when_asked_to(page: Page, tmp_path: Path) -> None:
    cookie = page.session()
    assert "Nothing has been examined" in page.ask("/health", cookie=cookie).text
    assert page.ask("/health", cookie=cookie, form={"csrf": page.csrf(cookie)}).status == 303
    assert "Remedy" in page.ask("/health", cookie=cookie).text
    assert page.ask("/api/v1/doctor", cookie=cookie).status == 200
