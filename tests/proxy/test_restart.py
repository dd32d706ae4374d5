"""A restart under systemd's socket refuses nobody: who calls meanwhile waits, and is answered."""

import signal
import socket
import threading
import xmlrpc.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .running import eventually, handing_over, running, units, write_plugins

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

PLUGINS = "import time\n" + units(
    Keep="return hosts", Hang='open(args["begun"], "w").close()\ntime.sleep(600)'
)

CONFIG = "[calls]\ndeadline_seconds = 2\n"


def test_no_connection_is_refused_and_no_call_lost_by_a_restart(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server, ThreadPoolExecutor(2) as clients:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        over = threading.Event()
        answered: list[list[str]] = []

        def call() -> None:
            while not over.is_set():
                with xmlrpc.client.ServerProxy(f"http://{listen}/") as client:
                    answered.append(client.runFilters(["Keep"], ["h1"], "vm", {})["result"])  # type: ignore[call-overload,index]

        def run() -> None:
            before = len(answered)
            given = {"listen": listen, "config": CONFIG, "shell": handing_over(server)}
            with running(folder, pass_fds=[server.fileno()], **given) as proxy:  # type: ignore[arg-type]
                eventually(lambda: len(answered) > before + 20)
                begun = tmp_path / "begun"
                hanging = clients.submit(proxy.filters, ["Hang"], ["h1"], {"begun": str(begun)})
                eventually(begun.exists)
                begun.unlink()
                proxy.process.send_signal(signal.SIGTERM)
                assert proxy.process.wait(30) == 0, proxy.log
                proxy.kill()
            assert hanging.result()["result"] == ["h1"]

        calling = clients.submit(call)
        try:
            run()
            run()
        finally:
            over.set()
        with running(folder, listen=listen, shell=handing_over(server), pass_fds=[server.fileno()]):
            calling.result(30)
    assert set(map(tuple, answered)) == {("h1",)}


def test_a_socket_that_the_configuration_does_not_name_is_refused(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = running(folder, listen="127.0.0.1:1", shell=handing_over(server), pass_fds=[server.fileno()])
        with pytest.raises(RuntimeError, match="socket agree with it"), given:
            pass
