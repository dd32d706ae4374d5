"""Runs the page as a process next to an inventory and a simulated engine, and asks it as a browser would."""

import html
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
import trustme

from ovirt_placement.model import Snapshot
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement_web.cli import main
from ovirt_simulator.core.backend import Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.configuration import PASSWORD, write_configuration
from tests.placement.inventory.running import running as inventory_running
from tests.processes import Forked
from tests.proxy.running import eventually

ROOT = "/ovirt-placement"
COOKIE = "__Secure-ovirt-placement"
PATIENCE_SECONDS = 60.0
#: A name that would be markup, a template, an address, and would turn a line round.
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}\"'&\u202edlrow javascript:alert(1)"


_Part = TypeVar("_Part", bound=StoreAccess)


@dataclass
class Answer:
    """What the page answers."""

    status: int
    headers: Any
    text: str
    cookie: str | None


@dataclass
class Page:
    """The page, and the engine behind it."""

    url: str
    engine: Engine
    server: Server
    process: Forked
    folder: Path
    #: How browsers know it, where that is another name than where it listens.
    named: str = ""
    #: Where its addresses begin, and its cookie: another engine of the same page has its own.
    root: str = ROOT
    cookie: str = COOKIE
    #: All that the page has ever said, for who looks for secrets in it.
    said: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def ask(
        self,
        path: str,
        *,
        cookie: str | None = None,
        form: dict[str, str] | None = None,
        method: str = "",
        root: str | None = None,
        **headers: str | None,
    ) -> Answer:
        """One request, without following; headers that are None are left out, `_` stands for `-`."""
        named = self.named or self.origin
        sent = {"Host": urlsplit(named).netloc} | ({"Origin": named} if form is not None else {})
        if cookie:
            sent["Cookie"] = f"{self.cookie}={cookie}"
        for name, value in headers.items():
            sent.pop(name.replace("_", "-"), None)
            if value is not None:
                sent[name.replace("_", "-")] = value
        method = method or ("GET" if form is None else "POST")
        answer = requests.request(
            method,
            self.origin + (self.root if root is None else root) + path,
            data=form,
            headers=sent,
            allow_redirects=False,
            timeout=60,
        )
        self.said.append(f"{answer.headers} {answer.text}")
        given = re.search(rf"{self.cookie}=([^;]*)", answer.headers.get("set-cookie", ""))
        return Answer(answer.status_code, answer.headers, answer.text, given[1] if given else None)

    def log_in(self, name: str = "admin@internal", password: str = PASSWORD, **headers: str | None) -> Answer:
        return self.ask("/log-in", form={"name": name, "password": password}, **headers)

    def session(self, name: str = "admin@internal") -> str:
        """The cookie of a new session."""
        answer = self.log_in(name)
        assert answer.status == 303, answer.text
        assert answer.cookie
        return answer.cookie

    def csrf(self, cookie: str) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.ask("/search", cookie=cookie).text)
        assert found
        return found[1]

    def seen(self, path: str) -> str:
        """What an administrator sees there, in whom no name does harm."""
        answer = self.ask(path, cookie=self.session())
        assert answer.status == 200, answer.text
        assert "<img" not in answer.text
        return words(answer.text)

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    def store(self, part: type[_Part]) -> closing[_Part]:
        """A part of the store, to be closed at the end of a block."""
        return closing(part(self.store_url, engine="default"))

    def audit(self) -> str:
        return (self.folder / "audit.log").read_text()

    def until(self, holds: Callable[[], bool]) -> None:
        eventually(holds, PATIENCE_SECONDS)


@contextmanager
def paged(
    folder: Path,
    state: Snapshot,
    *,
    web: str = "",
    listen: str = "127.0.0.1:0",
    first: str = "c1",
    named: str = "",
    store_url: str | None = None,
) -> Iterator[Page]:
    """A page about this state; `web` are further lines of its section, `first` is one of its clusters, and
    `named` is how browsers know it, where that is another name."""
    engine = Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=1, settings=Settings())
    server = serve(engine)
    try:
        more = f'[web]\nlisten = "{listen}"\naudit_log = "{folder}/audit.log"\n{web}\n'
        file = write_configuration(
            folder,
            f"{server.url}/ovirt-engine/api",
            inventory="interval_seconds = 0.2\n",
            store_url=store_url,
            more=more,
        )
        with inventory_running(file), page_process(file) as (process, url):
            page = Page(url, engine, server, process, folder, named)
            cookie = page.session()
            page.until(lambda: "Hosts up" in page.ask(f"/cluster/{first}", cookie=cookie).text)
            yield page
    finally:
        server.close()


@contextmanager
def paged_several(
    folder: Path, state: Snapshot, other: Snapshot, *, first: tuple[str, str]
) -> Iterator[tuple[Page, Page]]:
    """A page of two engines, the second of which is called east; `first` is a cluster of either."""
    engine = Engine.from_snapshot(other, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=2, settings=Settings())
    server = serve(engine)
    (folder / "east").mkdir()
    try:
        file = write_configuration(
            folder / "east",
            f"{server.url}/ovirt-engine/api",
            engine='name = "east"\n',
            inventory="interval_seconds = 0.2\n",
        )
        with (
            inventory_running(file),
            paged(folder, state, web=f'engines = ["{file}"]', first=first[0]) as page,
        ):
            east = Page(
                page.url,
                engine,
                server,
                page.process,
                folder,
                root=f"{ROOT}/engine/east",
                cookie=f"{COOKIE}-east",
                said=page.said,
            )
            cookie = east.session()
            east.until(lambda: "Hosts up" in east.ask(f"/cluster/{first[1]}", cookie=cookie).text)
            yield page, east
    finally:
        server.close()


def certified(folder: Path) -> str:
    """Lines by which the page speaks TLS as localhost; who vouches for it is in `ca.pem`."""
    authority = trustme.CA()
    served = authority.issue_cert("localhost")
    served.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    served.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return f'certificate = "{folder}/cert.pem"\nkey = "{folder}/key.pem"\n'


def words(text: str) -> str:
    """What a reader sees of a page, with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def fields(page: Page, cookie: str, path: str) -> dict[str, str]:
    """What a browser would send of the form at this address, without its last button."""
    text = page.ask(path, cookie=cookie).text
    form = text.partition('<form class="pf-v6-c-form"')[2].partition("</form>")[0]
    sent = {
        name: found.lstrip("\n") for name, found in re.findall(r'<textarea id="(\w+)"[^>]*>([^<]*)', form)
    }
    for name, options in re.findall(r'<select id="(\w+)"[^>]*>(.*?)</select>', form):
        chosen = re.findall(r'<option value="(\w+)" selected', options)
        sent[name] = (chosen or re.findall(r'<option value="(\w+)"', options))[0]
    for tag in re.findall(r"<input[^>]*>", form):
        name, value = (re.findall(rf' {attribute}="([^"]*)"', tag) for attribute in ("name", "value"))
        if name and ("checkbox" not in tag or " checked" in tag):
            sent[name[0]] = value[0] if value else "on"
    return {name: html.unescape(value) for name, value in sent.items()}


def check_preview(shown: str, document: dict[str, Any]) -> None:
    """Hold a preview against what the command prints as JSON of the same change."""
    for one in document["clusters"]:
        assert f"Rules it violates {len(one['violated'])} {len(one['repaired'])} repaired" in shown
        assert f"Migrations {len(one['moves'])} " in shown
        for rule in (*one["violated"], *one["remains_violated"]):
            assert all(group["name"] in shown for group in rule["groups"])
        for number, move in enumerate(one["moves"], 1):
            names = ", ".join(vm["name"] for vm in move["vms"])
            sources = ", ".join(dict.fromkeys(source["name"] for source in move["sources"]))
            line = f"{number} {names} {sources} {move['to']['name']} {move['reason']}"
            assert line.replace("\u202e", "\\u202e") in shown


@contextmanager
def page_process(file: Path) -> Iterator[tuple[Forked, str]]:
    """The page as a process, and its address."""
    with Forked(main, ["run", "--config", str(file)], file.with_name("web.log"), os.environ) as process:
        try:
            assert process.stdout is not None
            said = re.fullmatch(r"ovirt-placement-web: (\S+)\n", process.stdout.readline())
            assert said, process.log
            yield process, said[1]
        finally:
            process.terminate()
            assert process.wait(timeout=30) in (0, -15)
