"""What demonstrations run: a simulated engine, our services and the page, on free ports of this machine."""

import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from demo.processes import Processes, ProcessFailed, address
from ovirt_placement.model import Snapshot, state_file
from tests.configuration import write_configuration, write_password

PASSWORD = "demo"  # noqa: S105 - a throw-away engine on loopback
USER = "admin@internal"
#: Simulated seconds a second: a migration takes a moment instead of half a minute.
TIME_SCALE = 20


class Stage:
    """The processes of one demonstration, and what they are configured by."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.state = folder / "state.json"
        self.configuration = folder / "ovirt-placement.toml"
        self.processes = Processes(folder, {"OVIRT_PLACEMENT_CONFIG": str(self.configuration)})
        self.store = f"sqlite:///{folder}/store.db"
        self.url = ""
        self.seed = seed

    def configure(self, mode: str, url: str = "") -> None:
        """Write the configuration, for the engine at this address, else the one that runs."""
        write_configuration(
            self.folder,
            f"{url or self.url}/ovirt-engine/api",
            name=self.configuration.name,
            user=USER,
            inventory="interval_seconds = 0.5",
            store_url=self.store,
            more=f'[enforcer]\nmode = "{mode}"\ninterval_seconds = 1\n[web]\nlisten = "127.0.0.1:0"\n',
        )
        write_password(self.folder, PASSWORD)

    def start_engine(self, state: Snapshot, *, proxy: str = "", time_scale: float = TIME_SCALE) -> None:
        """Start a simulated engine in this state, which asks the proxy if there is one."""
        self.state.write_bytes(state_file.dumps(state))
        ready = self.start(
            "ovirt-simulator", "run", "--state", str(self.state), "--listen", "127.0.0.1:0",
            "--time-scale", str(time_scale), "--password", PASSWORD, "--seed", str(self.seed),
            *(("--proxy", proxy) if proxy else ()),
        )  # fmt: skip
        self.url = address(ready)

    def start_all(self, state: Snapshot, mode: str, *, time_scale: float = TIME_SCALE) -> str:
        """Start an engine in this state and all that works with it but the proxy; return the page's URL."""
        self.start_engine(state, time_scale=time_scale)
        self.configure(mode)
        self.start("ovirt-placement", "inventory", "run")
        page = self.start("ovirt-placement-web", "run")
        self.start("ovirt-enforcer", "run")
        return address(page)

    def start(self, *arguments: str) -> str:
        return self.processes.start(arguments[0], arguments)


def page_text(url: str) -> str:
    """Where the page is, and how to log in, in a line."""
    return f"The page: {url} (log in as {USER} with the password {PASSWORD})"


def demonstrate(command: str, show: Callable[[Path], None], *, interrupted: int = 0) -> int:
    """Show something in a folder of its own, which is removed then; its exit status.

    It is ended by Ctrl-C or SIGTERM, with the status `interrupted`.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix=f"ovirt-placement-{command.split()[-1]}-") as folder:
            show(Path(folder))
    except ProcessFailed as failure:
        print(f"{command}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return interrupted
    return 0
