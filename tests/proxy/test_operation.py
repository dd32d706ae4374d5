"""What an administrator sees: the log, the record of decisions, metrics, systemd, reloads, and `call`."""

import json
import os
import re
import signal
import ssl
import subprocess
import xmlrpc.client
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import trustme

from tests.pages import faults
from tests.proxy.running import COMMAND, RunningProxy, command, eventually, running, units, write_plugins
from tests.service.listening import systemd

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

HOSTS = ["h1", "h2", "h3"]

PLUGINS = '''
import logging
class Keep:
    properties_validation = "keep_count=[0-9]+"
    def do_filter(self, hosts, vm, args):
        """keeps some"""
        logging.getLogger("keeper").warning("keeping")
        return hosts[: int(args.get("keep_count", 1))]
    def do_score(self, hosts, vm, args):
        return [(host, 5) for host in hosts]
    def do_balance(self, hosts, args):
        return "11111111-2222-3333-4444-555555555555", hosts

class Failing:
    def do_filter(self, hosts, vm, args):
        raise OSError("the disk is full")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_plugins(tmp_path / "plugins", units=PLUGINS)


def test_the_log_has_a_line_for_each_call_and_says_at_debug_why_hosts_fell(folder: Path) -> None:
    with running(folder, config='[log]\nlevel = "debug"\n') as proxy:
        proxy.filters(["Keep", "Failing"], HOSTS)
        eventually(lambda: "host h3: dropped by Keep" in proxy.log)
    (line,) = [line for line in proxy.log.splitlines() if " runFilters " in line]
    found = re.search(
        r"\[(\S+)\] runFilters vm=vm hosts=3 out=1 [\d.]+ ms: Keep=[\d.]+ms Failing=[\d.]+ms", line
    )
    assert found
    request_id = found[1]
    assert f"[{request_id}] Keep: WARNING keeper: keeping" in proxy.log
    assert f"[{request_id}] Failing raised OSError: the disk is full" in proxy.log
    assert f"[{request_id}] Failing: Traceback" in proxy.log
    assert "host h1" not in proxy.log


def test_the_journal_gets_severities_and_no_times(folder: Path) -> None:
    reader, writer = os.pipe()
    status = os.fstat(writer)
    process = subprocess.Popen(
        [*COMMAND, "run", "--plugins", str(folder), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=writer,
        env={**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"},
    )
    os.close(writer)
    assert process.stdout is not None
    with process, open(reader) as journal:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        lines = journal.read().splitlines()
    assert process.returncode == 0
    assert any(line.startswith("<6>listening on ") for line in lines)
    assert lines[-1] == "<6>stopped"


def test_decisions_are_recorded(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"
    with running(folder, config=f'[decisions]\nfile = "{file}"\n') as proxy:
        proxy.filters(["Keep", "Failing"], HOSTS, {"keep_count": "2"})
        proxy.scores(["Keep"], HOSTS)
        proxy.balance("Keep", HOSTS)
    filtered, scored, balanced = [json.loads(line) for line in file.read_text().splitlines()]
    assert (filtered["method"], filtered["vm"], filtered["hosts"]) == ("runFilters", "vm", HOSTS)
    assert (filtered["properties"], filtered["fallen"]) == ({"keep_count": "2"}, {"h3": ["Keep"]})
    assert filtered["failures"] == {"Failing": "raised"}
    assert filtered["failure_sentences"] == {"Failing": "raised OSError: the disk is full"}
    assert scored["weights"] == {"Keep": [5, 5, 5]}
    assert balanced["balance"] == ["11111111-2222-3333-4444-555555555555", HOSTS]


def test_metrics(folder: Path) -> None:
    with running(folder) as proxy:
        proxy.filters(["Keep", "Failing", "Absent"], HOSTS)
        proxy.scores(["Keep"], HOSTS)
        with proxy.client() as client:
            client.discover()
            with pytest.raises(xmlrpc.client.Fault):
                client.nothing()
        samples = proxy.metrics()
        assert faults(f"{proxy.url}metrics") == ""
    expected = {
        ("calls_total", "runFilters", "unit_failed"): 1,
        ("calls_total", "runCostFunctions", "ok"): 1,
        ("calls_total", "discover", "ok"): 1,
        ("calls_total", "none", "fault"): 1,
        ("call_duration_seconds_count", "runFilters"): 1,
        ("unit_duration_seconds_count", "runFilters", "Keep"): 1,
        ("unit_failures_total", "raised", "runFilters", "Failing"): 1,
        ("unit_failures_total", "missing", "runFilters", "(not loaded)"): 1,
        ("workers", str(folder)): 4,
        ("worker_restarts_total", str(folder)): 0,
        ("units",): 4,
    }
    assert expected.items() <= samples.items()


def test_systemd_is_notified(folder: Path, tmp_path: Path) -> None:
    with systemd(tmp_path) as listening:
        with running(folder, environment=listening.environment(watchdog_seconds=0.3)):
            assert "READY=1" in listening.hear_until("WATCHDOG=1", times=2)
        listening.hear_until("STOPPING=1")


@pytest.fixture
def quick(folder: Path) -> Iterator[RunningProxy]:
    config = "[reload]\nwatch_seconds = 0.05\n[calls]\ndeadline_seconds = 0.5\n[workers]\nload_seconds = 1\n"
    with running(folder, config=config) as started:
        yield started


def test_changed_files_are_reloaded_without_dropping_a_call(quick: RunningProxy, folder: Path) -> None:
    (folder / "units.py").write_text(PLUGINS.replace('hosts[: int(args.get("keep_count", 1))]', "hosts[-1:]"))
    (folder / "added.py").write_text(units("score", Added="return []"))
    (folder / "damaged.py").write_text("class")

    def changed() -> bool:
        answer = quick.filters(["Keep"], HOSTS)
        assert answer["result_code"] == 0
        return bool(answer["result"] == HOSTS[-1:])

    eventually(changed)
    eventually(lambda: "score Added is new: the engine will not offer it before it is restarted" in quick.log)
    assert "damaged.py: cannot be loaded" in quick.log
    (folder / "added.py").unlink()
    eventually(lambda: "score Added is gone: the engine will go on asking for it" in quick.log)
    eventually(lambda: len(quick.workers()) == 4)


@pytest.mark.parametrize(
    "source",
    ["class Half(", "import os; os._exit(3)", "import ctypes; ctypes.string_at(0)", "while True: pass"],
)
def test_a_file_that_breaks_leaves_its_units_as_they_were(
    quick: RunningProxy, folder: Path, source: str
) -> None:
    (folder / "units.py").write_text(source)
    eventually(lambda: "stay as they were" in quick.log)
    assert quick.filters(["Keep"], HOSTS)["result"] == ["h1"]
    (folder / "units.py").write_text(PLUGINS.replace("keep_count=[0-9]+", "keep_count=[1-9]"))
    eventually(lambda: "filter Keep has another description or other properties" in quick.log)


def test_sighup_reloads(folder: Path) -> None:
    with running(folder, config="[reload]\nwatch_seconds = 0\n") as proxy:
        proxy.process.send_signal(signal.SIGHUP)
        eventually(lambda: "reloaded the plugins of" in proxy.log)
        assert proxy.filters(["Keep"], HOSTS)["result"] == ["h1"]


def test_call_speaks_to_a_running_proxy(folder: Path) -> None:
    with running(folder) as proxy:
        found = command("call", "--url", proxy.url, "discover")
        assert (found.returncode, "keeps some" in found.stdout) == (0, True)
        file = folder / "proxy.toml"
        file.write_text(f'[server]\nlisten = "127.0.0.1:{proxy.port}"\n')
        assert "keeps some" in command("call", "discover", "--config", str(file)).stdout
        call = ("call", "--url", proxy.url)
        keep = ("--unit", "Keep", "--host", "h1", "--host", "h2")
        filtering = ("runFilters", *keep, "--unit", "Failing", "--vm", "v", "--property", "keep_count=2")
        for _ in range(2):
            done = command(*call, "--json", *filtering)
            answer = json.loads(done.stdout)
            assert (done.returncode, answer["result"]) == (1, ["h1", "h2"])
            assert list(answer["plugin_errors"]) == ["Failing"], "it is reported every time"
        scored = command(*call, "runCostFunctions", *keep, "--vm", "v")
        assert (scored.returncode, "Keep" in scored.stdout) == (0, True)
        moved = command(*call, "runLoadBalancing", *keep)
        assert "move VM 11111111-2222-3333-4444-555555555555 to one of h1, h2" in moved.stdout
    gone = command("call", "--url", proxy.url, "discover")
    assert (gone.returncode, gone.stderr.count("\n")) == (2, 1)
    assert gone.stderr.startswith("ovirt-scheduler-proxy: no proxy answers at")


def test_another_address_needs_tls_and_a_list_of_clients(folder: Path, tmp_path: Path) -> None:
    refused = command("run", "--plugins", str(folder), "--listen", "0.0.0.0:0")
    assert refused.returncode == 2
    assert "tls_certificate, tls_key and allowed_clients" in refused.stderr
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    config = f"""
    [server]
    tls_certificate = "{tmp_path}/cert.pem"
    tls_key = "{tmp_path}/key.pem"
    allowed_clients = ["192.0.2.0/24"]
    """
    with running(folder, config=config, listen="0.0.0.0:0") as proxy:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        url = f"https://127.0.0.1:{proxy.port}/"
        with xmlrpc.client.ServerProxy(url, context=context) as client:
            answer = client.runFilters(["Keep"], HOSTS, "vm", {})
            assert isinstance(answer, dict)
            assert answer["result"] == ["h1"]
        # Who asks by hand reaches it by another name than the engine, and trusts no authority of a site.
        asked = command("call", "--url", f"https://localhost:{proxy.port}/", "discover")
        assert (asked.returncode, "Keep" in asked.stdout) == (0, True), asked.stderr


def test_it_names_its_version() -> None:
    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"ovirt-scheduler-proxy {version('ovirt-placement')}\n")


def test_a_taken_port_is_said_in_one_line(folder: Path) -> None:
    with running(folder) as proxy:
        done = command("run", "--plugins", str(folder), "--listen", f"127.0.0.1:{proxy.port}")
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{proxy.port}" in done.stderr
