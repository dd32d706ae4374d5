"""A portal behind a real Apache, with the page in both layouts; and a person's visit to it in a browser."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import trustme
from playwright.sync_api import Browser, FrameLocator, Page

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import user_id
from ovirt_simulator.http.server import Server, serve
from tests.configuration import PASSWORD, write_configuration
from tests.paths import CHECKOUT
from tests.placement.inventory.running import running as inventory_running
from tests.web.browser.conftest import Noting
from tests.web.running import ROOT, apache, free_port, page_process

PLUGIN = CHECKOUT / "packaging" / "ui-plugin"
STATIC = Path(__file__).with_name("static")
_KINDS = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
_STATUS = {"up": "Up", "down": "Down"}


@dataclass
class Portal:
    """The portal and the two pages, by the addresses that browsers use."""

    origin: str
    own_port: str
    engine: Engine
    server: Server
    authority: Path
    state: Snapshot
    folder: Path
    user: str = "admin@internal"

    def page(self, layout: str) -> str:
        """The origin of the page in this layout."""
        return self.own_port if layout == "port" else self.origin

    def token(self) -> str:
        """What `ssoToken()` gives: a token that REST takes."""
        who = {"username": self.user, "password": PASSWORD}
        answer = requests.post(
            f"{self.origin}/ovirt-engine/sso/oauth/token",
            data={"grant_type": "password", "scope": "ovirt-app-api", **who},
            headers={"Accept": "application/json"},
            verify=str(self.authority),
            timeout=30,
        )
        found: str = answer.json()["access_token"]
        return found

    def definitions(self, layout: str, *, naive: bool) -> str:
        """What the engine prints into the host page; keys of the local file win, one by one."""
        data = json.loads((PLUGIN / "ovirt-placement.json").read_text())
        local = json.loads(self._local()) if layout == "port" else {}
        data["config"] |= local.get("config", {})
        plugins = [data] + ([{"name": "naive", "url": "naive.html"}] if naive else [])
        user = {"id": user_id(self.user), "userName": self.user, "ssoToken": self.token()}
        return (
            f"var pluginDefinitions = {json.dumps(plugins)};\nvar userInfo = {json.dumps(user)};\n"
            f"var entities = {json.dumps(self._entities())};\n"
        )

    def _local(self) -> str:
        """The file that docs/portal.md shows for a port of its own."""
        (shown,) = re.findall(r"```json\n(.*?)```", (CHECKOUT / "docs" / "portal.md").read_text(), re.DOTALL)
        assert "https://engine.example.com:8446" in shown
        return str(shown).replace("https://engine.example.com:8446", self.own_port)

    def _entities(self) -> dict[str, list[dict[str, Any]]]:
        return {
            "VirtualMachine": [
                {"id": vm.id, "name": vm.name, "status": _STATUS[vm.status], "managed": True}
                for vm in self.state.vms
            ],
            "Host": [{"id": host.id, "name": host.name, "managed": True} for host in self.state.hosts],
            "Cluster": [{"id": one.id, "name": one.name, "managed": True} for one in self.state.clusters],
        }


@contextmanager
def portal(folder: Path, state: Snapshot) -> Iterator[Portal]:
    """A portal of this state, with the page behind its Apache and at a port of its own."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "localhost.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    engine = Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC), seed=1, settings=Settings())
    front, behind, own = free_port(), free_port(), free_port()
    with ExitStack() as stack:
        server = serve(engine)
        stack.callback(server.close)
        origin, own_port = f"https://localhost:{front}", f"https://localhost:{own}"
        found = Portal(origin, own_port, engine, server, folder / "ca.pem", state, folder)
        files = stack.enter_context(_files(found))
        block = _tls(folder) + _engines(server.url, files) + _documented(behind)
        stack.enter_context(apache(folder, front, block, ["ssl"]))
        first = _configuration(
            found,
            "placement.toml",
            f'listen = "127.0.0.1:{behind}"\norigins = ["{origin}"]\ntrusted_proxies = ["127.0.0.1"]\n',
        )
        second = _configuration(
            found,
            "port.toml",
            f'listen = "127.0.0.1:{own}"\norigins = ["{own_port}"]\n'
            f'certificate = "{folder}/localhost.pem"\nkey = "{folder}/localhost.pem"\n',
        )
        stack.enter_context(inventory_running(first))
        stack.enter_context(page_process(first))
        stack.enter_context(page_process(second))
        yield found


def _configuration(portal: Portal, name: str, web: str) -> Path:
    return write_configuration(
        portal.folder,
        f"{portal.origin}/ovirt-engine/api",
        name=name,
        engine=f'ca_file = "{portal.authority}"',
        inventory="interval_seconds = 0.2\n",
        more=f'[web]\naudit_log = "{portal.folder}/audit.log"\n{web}',
    )


def _tls(folder: Path) -> str:
    pem = folder / "localhost.pem"
    return f"SSLEngine on\nSSLCertificateFile {pem}\nSSLCertificateKeyFile {pem}\nSSLSessionCache none\n"


def _engines(simulator: str, files: str) -> str:
    """The engine's own part, with the header that it sends."""
    header = 'Header always set X-Frame-Options SAMEORIGIN "expr=%{REQUEST_URI} =~ m#^/ovirt-engine#"\n'
    paths = {"/ovirt-engine/webadmin": files, "/ovirt-engine": simulator}
    return header + "".join(f"ProxyPass {path} {to}{path}\n" for path, to in paths.items())


def _documented(behind: int) -> str:
    (block,) = re.findall(r"```apache\n(.*?)```", (CHECKOUT / "docs" / "web.md").read_text(), re.DOTALL)
    return str(block).replace("127.0.0.1:8446", f"127.0.0.1:{behind}")


@contextmanager
def _files(portal: Portal) -> Iterator[str]:
    """Serves the host page, and the plug-in's resources where the engine has them; returns its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            path = address.path.removeprefix("/ovirt-engine/webadmin/")
            # The host page says by its own query what it is to be; the script's address has none.
            asked = parse_qs(address.query, keep_blank_values=True)
            resource = path.removeprefix("plugin/ovirt-placement/")
            folder = PLUGIN / "ovirt-placement-resources" if resource != path else STATIC
            file = folder / resource
            if path == "definitions.js":
                self._answer(portal.definitions(asked["layout"][0], naive="naive" in asked), ".js")
            elif file.is_file() and file.resolve().is_relative_to(folder):
                text = file.read_text()
                if path == "WebAdmin.html":
                    text = text.replace("definitions.js", f"definitions.js?{address.query}")
                self._answer(text, file.suffix)
            else:
                self.send_error(404)

        def _answer(self, text: str, suffix: str) -> None:
            content = text.encode()
            self.send_response(200)
            headers = {
                "Content-Type": _KINDS[suffix],
                "Content-Length": str(len(content)),
                "Cache-Control": "no-cache",
                "X-Content-Type-Options": "nosniff",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def start_address(portal: Portal, layout: str, *more: str, place: str = "") -> str:
    """The host page; `more` are words of its query."""
    query = "&".join([f"layout={layout}", *more])
    return f"{portal.origin}/ovirt-engine/webadmin/WebAdmin.html?{query}#{place}"


def root_of(portal: Portal, layout: str) -> str:
    return portal.page(layout) + ROOT


#: Of each file whose tests visit the portal: one at a time.
MARKS = [
    pytest.mark.nightly,
    pytest.mark.xdist_group("portal"),
    pytest.mark.skipif(shutil.which("apache2") is None, reason="there is no apache2"),
]
LAYOUTS = ["apache", "port"]
#: A VM as the portal hands it to plug-ins.
DB_1 = {"id": "a", "name": "db-1", "status": "Up", "managed": True}


class Visit(Noting):
    """A person's browser in the portal, and all that it has complained of or asked others for."""

    def __init__(self, page: Page, served: Portal, layout: str) -> None:
        super().__init__(page, served.origin, served.page(layout))
        self.served = served
        self.layout = layout

    def enter(self, *more: str, place: str = "") -> None:
        self.page.goto(start_address(self.served, self.layout, *more, place=place))
        self.page.wait_for_function("plugins.get('ovirt-placement').state === 'IN_USE'")

    def reveal(self, kind: str, name: str) -> None:
        """Select one thing in its list, and show its tab."""
        self.page.click(f"#menu >> text={kind}")
        self.page.click(f"#rows button:text-is('{name}')")
        self.page.click("#tabs >> text=Placement")

    def select(self, kind: str, items: list[Any], *, as_arguments: bool = False) -> None:
        self.page.evaluate("([kind, items, how]) => select(kind, items, how)", [kind, items, as_arguments])

    @property
    def outer(self) -> FrameLocator:
        return self.page.frame_locator("#content iframe")

    @property
    def inner(self) -> FrameLocator:
        return self.outer.frame_locator("iframe")

    @property
    def in_dialog(self) -> FrameLocator:
        return self.page.frame_locator("#dialog iframe").frame_locator("iframe")

    @property
    def log_ins(self) -> int:
        return self.asked.count(("POST", f"{root_of(self.served, self.layout)}/log-in/token"))

    def state(self) -> str:
        return str(self.page.evaluate("plugins.get('ovirt-placement').state"))


@contextmanager
def visit(browser: Browser, served: Portal, layout: str = "apache") -> Iterator[Visit]:
    """A browser profile of its own, which takes the certificate of the test."""
    served.user = "admin@internal"
    context = browser.new_context(ignore_https_errors=True)
    try:
        yield Visit(context.new_page(), served, layout)
    finally:
        context.close()
