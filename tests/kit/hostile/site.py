"""What hostile neighbours act on: engine, proxy, inventory, page and enforcer as processes, of 60 hosts."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
from demo.stage import address

from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.generate import Sizes, generate
from tests.configuration import PASSWORD, write_configuration
from tests.integration.storms import log_in
from tests.integration.world import ENGINE, PROXY, OurProcesses
from tests.kit.hostile import processors
from tests.kit.hostile.relay import relayed
from tests.pages import samples
from tests.paths import CHECKOUT, PLUGINS
from tests.proxy.running import AT_ONCE
from tests.web.running import apache, certified, free_port

INVENTORY, ENFORCER, PAGE = "ovirt-placement", "ovirt-enforcer", "ovirt-placement-web"
#: The user of the services, their group, and another member of it; and how the services become that user, who
#: may read what root alone may read: an interpreter below root's home.
OWNER, GROUP, MEMBER = 12_345, 12_346, 12_347
_AS_OWNER = (
    *(f"/usr/bin/setpriv --reuid={OWNER} --regid={GROUP} --clear-groups".split()),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"),
)
#: How long an answer of the engine may take.
ENGINE_SECONDS = 5
#: More than the parts keep.
DISK_MB = 96
ROOT, COOKIE = "/ovirt-placement", "__Secure-ovirt-placement"
SIZES = Sizes(hosts=60, vms=1200, groups=60)

_SETTINGS = """\
[enforcer]
mode = "approve"
interval_seconds = 1
poll_seconds = 0.5
metrics = "127.0.0.1:0"
[enforcer.maintenance]
blocked_by = "sh -c 'trap : TERM; setsid yes & while :; do sleep 1; done'"
command_seconds = 2
[web]
"""


class Place(NamedTuple):
    """Where the parts are."""

    store_url: str | None = None
    tls: bool = False
    #: Whether a real Apache stands before the page, and speaks TLS in its place.
    apache: bool = False
    #: Whether the engine's answers pass the relay.
    relayed: bool = False


class Site:
    """The processes, and what of them a neighbour or a witness must know."""

    def __init__(
        self,
        base: Path,
        processes: OurProcesses,
        undone: ExitStack,
        state: Snapshot,
        place: Place,
        groups: Path | None,
    ) -> None:
        """Start all; what the parts keep is in `folder`, and what is configured above it in `base`."""
        #: Where parts, neighbours and witnesses have their shares of processors.
        self.groups = groups
        if groups is not None and place.store_url is not None:
            processors.move(groups, "postgresql", Path(place.store_url.partition("host=")[2]))
        self.folder, self.state = base / "kept", state
        self._processes = processes
        (base / "proxy.toml").write_text(AT_ONCE)
        (base / "state.json").write_bytes(state_file.dumps(state))
        self.proxy = self._start(f"{PROXY} run --config {base}/proxy.toml --plugins {PLUGINS}")
        self.engine = self._start(f"{ENGINE} run --state {base}/state.json --http-threads 32")
        self.relay = undone.enter_context(relayed(self.engine))
        served = free_port()
        self.configuration = write_configuration(
            base,
            f"{self.relay.url if place.relayed else self.engine}/ovirt-engine/api",
            engine=f"timeout_seconds = {ENGINE_SECONDS}",
            store_url=place.store_url,
            more=_SETTINGS + (_tls(base, served, place.apache) if place.tls else 'listen = "127.0.0.1:0"\n'),
        )
        #: Who vouches for the page, where it speaks TLS.
        self.authority = base / "ca.pem" if place.tls else None
        settings = self.configuration.read_text()
        for kept in ("inventory", "store.db"):
            settings = settings.replace(f"{base}/{kept}", f"{self.folder}/{kept}")
        self.configuration.write_text(settings)
        if as_root():
            for secret in (base / "password", *base.glob("key.pem")):
                os.chown(secret, OWNER, GROUP)
        self._start(f"{INVENTORY} inventory run", listen=False)
        self._start(f"{ENFORCER} run", listen=False)
        page = self._start(f"{PAGE} run", listen=False)
        #: As browsers know it.
        self.page = f"https://localhost:{served}{ROOT}" if place.tls else page
        if place.apache:
            undone.enter_context(apache(base, served, _block(base, page), ["ssl"]))
        self.person, self.reader = self._session("admin@internal"), self._session("reader@internal")
        self.expired = log_in(self.engine)
        requests.post(f"{self.engine}/ovirt-engine/services/sso-logout", {"token": self.expired}, timeout=30)

    @property
    def verified(self) -> str | bool:
        """By what a browser verifies the page."""
        return True if self.authority is None else str(self.authority)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where anybody may connect."""
        parts = map(urlsplit, (self.page, self.proxy))
        return [(one.hostname or "", one.port or 0) for one in parts]

    def cycles(self, *results: str) -> float:
        """How many cycles the enforcer has ended with these results."""
        log = self._processes.log(ENFORCER).read_text()
        url = log.partition("metrics at ")[2].split()[0]
        return sum(
            value
            for (name, *labels), value in samples(url).items()
            if name.endswith("_cycles_total") and labels[-1] in results
        )

    def freeze_engine(self) -> None:
        self._processes.freeze(ENGINE)

    def thaw_engine(self) -> None:
        self._processes.thaw(ENGINE)

    def check(self) -> None:
        """Raise `ProcessFailed` if a part has ended."""
        self._processes.check()

    def command(self, line: str) -> None:
        """Carry out a command as the user of the services."""
        done = self._processes.run(self._words(line))
        assert done.returncode == 0, done.stdout + done.stderr

    def _start(self, command: str, *, listen: bool = True) -> str:
        words = self._words(command + " --listen 127.0.0.1:0" * listen)
        return address(self._processes.start(command.split()[0], words)).rstrip("/")

    def _words(self, line: str) -> list[str]:
        """An installed command, which the user of the services carries out unless it is the engine."""
        name, *words = shlex.split(line)
        behind: list[str] = []
        if self.groups is not None:
            own = processors.group(self.groups, name, processors.weight_of(name))
            behind = ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(own)]
        as_owner = _AS_OWNER if as_root() and name != ENGINE else ()
        return [*behind, *as_owner, str(Path(sys.executable).parent / name), *words]

    def _session(self, name: str) -> str:
        origin = "://".join(urlsplit(self.page)[:2])
        answer = requests.post(
            f"{origin}{ROOT}/log-in",
            {"name": name, "password": PASSWORD},
            headers={"Origin": origin},
            allow_redirects=False,
            verify=self.verified,
            timeout=30,
        )
        assert answer.status_code == 303, answer.text
        return answer.headers["set-cookie"].partition(f"{COOKIE}=")[2].partition(";")[0]


def _tls(folder: Path, port: int, behind_apache: bool) -> str:
    """Lines by which the page, or a web server before it, speaks TLS, and is known as localhost."""
    files = certified(folder)
    origins = f'origins = ["https://localhost:{port}"]\n'
    if behind_apache:
        return f'listen = "127.0.0.1:0"\ntrusted_proxies = ["127.0.0.1"]\n{origins}'
    return f'listen = "127.0.0.1:{port}"\n{origins}{files}'


def _block(folder: Path, page: str) -> str:
    """What docs/web.md shows of Apache's configuration, for this page."""
    (block,) = re.findall(r"```apache\n(.*?)```", (CHECKOUT / "docs" / "web.md").read_text(), re.DOTALL)
    block = block.replace("127.0.0.1:8446", urlsplit(page).netloc)
    files = f"SSLCertificateFile {folder}/cert.pem\nSSLCertificateKeyFile {folder}/key.pem\n"
    return f"SSLEngine on\nSSLSessionCache none\n{files}{block}"


def as_root() -> bool:
    return os.geteuid() == 0


@contextmanager
def site(place: Place = Place()) -> Iterator[Site]:  # noqa: B008 - it cannot change
    """Run all parts; as root, as a user of their own, with a small disk that their group may write."""
    with ExitStack() as undone:
        groups = undone.enter_context(processors.groups())
        base = Path(undone.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        base.chmod(0o755)
        kept = base / "kept"
        kept.mkdir()
        if as_root():
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", kept], check=True)
            undone.callback(subprocess.run, ["umount", "-l", kept], check=True)
            os.chown(kept, OWNER, GROUP)
            kept.chmod(0o2770)
        (base / "logs").mkdir()
        environment = {"OVIRT_PLACEMENT_CONFIG": str(base / "placement.toml")}
        processes = undone.enter_context(OurProcesses(base / "logs", environment))
        made = Site(base, processes, undone, generate(SIZES, 1), place, groups)
        undone.callback(made.thaw_engine)
        yield made
