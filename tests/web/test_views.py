"""What views show, as commands print it; the live state, acts, and the page behind a real Apache."""

import asyncio
import json
import re
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import requests

from ovirt_placement import config
from ovirt_placement.answers.plans import plans_record
from ovirt_placement.answers.status.clusters import Health
from ovirt_placement.answers.status.health import HealthState, StateSource, StatusDocument, status
from ovirt_placement.cli.main import main as placement
from ovirt_placement.inventory.connection import SOCKET_NAME
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement_web.bounds import Bounds, Refusal, WebMetrics
from ovirt_placement_web.state import sources
from ovirt_placement_web.state.questions import Memory, Questions
from ovirt_placement_web.state.sources import LiveState, Past, View
from ovirt_placement_web.views import endpoints
from ovirt_placement_web.views.endpoints import Act
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_configuration
from tests.paths import CHECKOUT
from tests.placement.inventory.running import loaded, running
from tests.scenarios.stage import START
from tests.web.conftest import STATE
from tests.web.running import COOKIE, PATIENCE_SECONDS, ROOT, Page, apache, free_port, paged, words

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


@pytest.mark.parametrize(("known", "status"), [(True, 404), (False, 503)])
def test_what_may_be_there_is_not_called_missing_while_nothing_is_known(known: bool, status: int) -> None:
    request: Any = SimpleNamespace(path_params={"name": "c9"})
    view: Any = SimpleNamespace(known=known, snapshot=snapshot(host("h1")))
    unused: Any = None
    with pytest.raises(Refusal) as refused:
        _ = endpoints.Asked(request, unused, unused, view).cluster
    assert refused.value.status == status


def test_vms_that_a_cluster_counts_as_down_are_those_of_its_list(page: Page) -> None:
    cookie = page.session()
    counted = page.ask("/cluster/c1", cookie=cookie).text
    link = re.search(r'href="/ovirt-placement(/cluster/c1/vms[^"]*)">1 down', counted)
    assert link
    assert "Virtual machines 1 VM " in words(page.ask(link[1], cookie=cookie).text)
    assert "Virtual machines 0 VMs " in page.seen("/cluster/c2/vms?show=down")


def test_the_portals_token_begins_a_session(page: Page) -> None:
    token = page.server.tokens.log_in("admin@internal", "password")
    answer = page.ask("/log-in/token", form={"token": token, "next": "/ovirt-placement/vm/a"})
    assert (answer.status, answer.headers["location"]) == (303, "/ovirt-placement/vm/a")
    assert page.ask("/", cookie=answer.cookie).status == 200
    assert page.ask("/log-in/token", form={"token": "wrong"}).status == 401


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
    assert page.act("/health", cookie).status == 303
    assert "Remedy" in page.ask("/health", cookie=cookie).text
    assert page.ask("/api/v1/doctor", cookie=cookie).status == 200


# -- The live state, a configuration that is read again, and acts.
async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


@pytest.mark.system
def test_a_change_after_silence_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a moment each time, and would pause for an hour."""
    monkeypatch.setattr(sources, "_WAIT_SECONDS", 0.5)
    monkeypatch.setattr(sources, "_PAUSE_SECONDS", 3600.0)
    engine = Engine.from_snapshot(snapshot(host("h1"), vm("a")), clock=START, settings=PROMPT)
    with closing(serve(engine)) as server:
        file = write_configuration(tmp_path, server.api_url, inventory="interval_seconds = 0.05\n")
        live = LiveState(loaded(file))

        async def follow() -> None:
            await until(lambda: live.view.known)
            for _ in range(3):  # it looks again and again while nothing is published, and does not pause
                looked_at = live.view
                await until(lambda looked_at=looked_at: live.view is not looked_at)
            with live.subscribed() as changed:
                number = live.view.number
                engine.vms.start("a")
                await changed.wait()
            assert live.view.number > number

        with running(file):
            live.start()
            asyncio.run(asyncio.wait_for(follow(), PATIENCE_SECONDS))
            live.stop()


def test_what_is_known_of_an_engine_that_is_gone_grows_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inventory was here, and is gone as well: what the page itself once read is not of now."""
    monkeypatch.setattr(sources, "_FRESH_SECONDS", 0.0)
    engine = Engine.from_snapshot(snapshot(host("h1")), clock=START, settings=PROMPT)
    with closing(serve(engine)) as server:
        live = LiveState(loaded(write_configuration(tmp_path, server.api_url)))
        live._read_state()
    known = live.view
    assert judged(known) == Health.HEALTHY
    (tmp_path / "inventory").mkdir(exist_ok=True)
    (tmp_path / "inventory" / SOCKET_NAME).touch()
    live._read_state()
    assert (live.view.snapshot, live.view.true_at) == (known.snapshot, known.true_at)
    assert judged(live.view) == Health.UNHEALTHY


def judged(view: View) -> Health:
    return status(view.parts, view.snapshot.clusters).health


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes in the audit log, of acts that the engine permits."""

    async def permitted(asked: object, act: Act) -> None:
        pass

    found: list[str] = []
    monkeypatch.setattr(endpoints, "_check_permits", permitted)
    monkeypatch.setattr(endpoints, "note", lambda *words, **more: found.append(words[3]))
    return found


class Ann:
    """Who asks."""

    rights = SimpleNamespace(user_name="ann")


def asked() -> Any:
    limits = Bounds(WebMetrics(), streams=5, streams_each=5)
    site = SimpleNamespace(bounds=limits, root="")
    return SimpleNamespace(request=None, session=Ann(), site=site)


def test_an_act_that_fails_as_nobody_foresaw_is_a_line_of_the_audit_log(noted: list[str]) -> None:
    act = Act("pause", (cluster(),), lambda who: [].pop(), "/")
    with pytest.raises(IndexError):
        asyncio.run(endpoints._carry_out(asked(), act))
    assert noted == ["not known: IndexError('pop from empty list')"]


@pytest.mark.parametrize("plans", [False, True])
def test_acts_that_plan_take_no_place_of_those_that_do_not(noted: list[str], plans: bool) -> None:
    by = asked()
    free = []

    def carry_out(who: str) -> None:
        free.append((by.site.bounds.acts._free, by.site.bounds.plans._free))

    before = (by.site.bounds.acts._free, by.site.bounds.plans._free)
    asyncio.run(endpoints._carry_out(by, Act("begin", (cluster(),), carry_out, "/", plans=plans)))
    assert free == [(before[0] - (not plans), before[1] - plans)]
    assert noted == ["done"]


def test_a_mode_that_was_changed_since_is_not_called_one_that_is_still_to_come(tmp_path: Path) -> None:
    path = write_configuration(
        tmp_path, "http://127.0.0.1:1/ovirt-engine/api", more='[enforcer]\nmode = "observe"\n'
    )
    found = config.load(path)
    past, memory = Past(found), Memory()
    parts = HealthState(snapshot=snapshot(host("h1")), source=StateSource(kind="inventory", where="here"))

    def status(number: int) -> StatusDocument:
        return Questions(found, past, memory, View(number, parts, time.monotonic(), None)).status()

    def configured_mode(number: int) -> str | None:
        enforcer = status(number).enforcer
        return None if enforcer is None else enforcer.configured_mode

    assert configured_mode(1) == "observe"
    path.write_text(path.read_text().replace("observe", "approve"))
    assert configured_mode(2) == "approve"
    path.write_text(path.read_text().replace("approve", "aprove"))
    assert configured_mode(3) is None
    path.write_text("[engine")
    (mistake,) = status(4).mistakes
    assert str(path) in mistake


# -- Behind a real Apache, as docs/web.md shows: names, log-in, and the event stream.
@pytest.mark.system
@pytest.mark.skipif(shutil.which("apache2") is None, reason="there is no apache2")
def test_the_page_behind_anapache(tmp_path: Path) -> None:
    port, behind = free_port(), free_port()
    lines = f'origins = ["http://localhost:{port}"]\ntrusted_proxies = ["127.0.0.1"]'
    (block,) = re.findall(r"```apache\n(.*?)```", (CHECKOUT / "docs" / "web.md").read_text(), re.DOTALL)
    block = block.replace("127.0.0.1:8446", f"127.0.0.1:{behind}").replace(
        "X-Forwarded-Proto https", "X-Forwarded-Proto http"
    )
    root = f"http://localhost:{port}{ROOT}"
    with paged(
        tmp_path, STATE, web=lines, listen=f"127.0.0.1:{behind}", named=f"http://localhost:{port}"
    ) as page:
        with apache(tmp_path, port, block):
            assert requests.get(f"{root}/log-in", timeout=30).status_code == 200
            form = {"name": "admin@internal", "password": "password"}
            headers = {"Origin": f"http://localhost:{port}"}
            answer = requests.post(
                f"{root}/log-in", data=form, headers=headers, allow_redirects=False, timeout=30
            )
            assert answer.status_code == 303
            found = re.search(rf"{COOKIE}=([^;]+)", answer.headers["set-cookie"])
            assert found
            cookie = {"Cookie": f"{COOKIE}={found[1]}"}
            assert "databases" in requests.get(f"{root}/cluster/c1", headers=cookie, timeout=30).text
            with requests.get(f"{root}/events", headers=cookie, stream=True, timeout=30) as stream:
                # The first event comes at once: Apache keeps nothing back.
                assert next(stream.iter_lines()) == b"event: state"
            # People and programs come from its address: none of them locks the others out.
            wrong = {"name": "admin@internal", "password": "wrong"}
            for number in range(6):
                requests.post(f"{root}/log-in", data=wrong, headers=headers, timeout=30)
                bearer = {"Authorization": f"Bearer expired{number}"}
                assert requests.get(f"{root}/api/v1/status", headers=bearer, timeout=30).status_code == 401
            half = f"POST {ROOT}/log-in HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 9\r\n\r\nx"
            with ExitStack() as slow:
                for _ in range(60):
                    sender = slow.enter_context(socket.create_connection(("127.0.0.1", port)))
                    sender.sendall(half.encode())
                began = time.monotonic()
                assert requests.get(f"{root}/", headers=cookie, timeout=30).status_code == 200
                assert time.monotonic() - began < 5.0, "what is sent slowly may take twice as long"
            answer = requests.post(
                f"{root}/log-in", data=form, headers=headers, allow_redirects=False, timeout=30
            )
            assert answer.status_code == 303
        assert '"address":"127.0.0.1"' in page.audit()
