"""Runs the page as a process next to an inventory and a simulated engine, and asks it as a browser would."""

import html
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import requests
import trustme
from starlette.routing import BaseRoute, Mount, Route

from ovirt_placement.model import Snapshot
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement_web.application import routes
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

    def act(self, path: str, cookie: str, **form: str) -> Answer:
        """What a form of the page sends."""
        return self.ask(path, cookie=cookie, form={"csrf": self.csrf(cookie), **form})

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
    with closing(serve(engine)) as server:
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


@contextmanager
def paged_several(
    folder: Path, state: Snapshot, other: Snapshot, *, first: tuple[str, str]
) -> Iterator[tuple[Page, Page]]:
    """A page of two engines, the second of which is called east; `first` is a cluster of either."""
    engine = Engine.from_snapshot(other, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=2, settings=Settings())
    with closing(serve(engine)) as server:
        (folder / "east").mkdir()
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


# -- All addresses of the page, as the application has them, and the views that most tests ask.
class Address(NamedTuple):
    """A method and a path below the root, with `{name}` where something is named."""

    method: str
    path: str

    def of(self, name: str) -> str:
        """The path with a name that is quoted already."""
        return re.sub(r"\{\w+(:\w+)?\}", lambda _: name, self.path)


def addresses() -> tuple[Address, ...]:
    """Each that the application serves, but for files."""
    return tuple(sorted(set(_below("", routes()))))


def _below(prefix: str, served: Iterable[BaseRoute]) -> Iterator[Address]:
    for one in served:
        if isinstance(one, Mount):
            yield from _below(prefix + one.path, one.routes)
        elif isinstance(one, Route):
            for method in {"GET", *(one.methods or ())} if one.methods is None else one.methods - {"HEAD"}:
                yield Address(method, prefix + one.path)


#: Views that ask the engine, and so are not shown while it is away.
ASKED = ["/plan/c1/now"]
VIEWS = [
    *("/", "/cluster/c1", "/map/c1", "/map/c1/table", "/ha/c1", "/ha/c1?host=h1", "/vm/a", "/host/h1"),
    *("/plan/c1", *ASKED, "/group/g1", "/group/g1/edit", "/cluster/c1/new-group", "/cluster/c1/rule"),
    *("/history", "/keys", "/health", "/search?q=db", "/vms", "/hosts", "/rules"),
    *("/cluster/c1/rules", "/cluster/c1/hosts", "/cluster/c1/history"),
]


# -- A real Apache of the system, in front of what a test serves.
_MODULES = ("mpm_event", "authz_core", "proxy", "proxy_http", "headers")


@contextmanager
def apache(folder: Path, port: int, block: str, modules: Sequence[str] = ()) -> Iterator[None]:
    """Run one at this port of this machine, with these lines of configuration."""
    loaded = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in (*_MODULES, *modules)
    )
    file = folder / "apache.conf"
    file.write_text(
        f"{loaded}\nServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port}\n"
        f"PidFile {folder}/apache.pid\nErrorLog {folder}/apache.log\nUser www-data\nGroup www-data\n{block}"
    )
    with subprocess.Popen(["apache2", "-f", str(file), "-DFOREGROUND"]) as process:
        try:
            _await(port, folder / "apache.log")
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


def _await(port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < until, log.read_text() if log.exists() else "no log"
            time.sleep(0.05)
        else:
            return
