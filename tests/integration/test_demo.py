"""The demonstration, judged from outside: what the engine's API says after it, and what it leaves behind.

Reads the API with the standard library alone, so that it shares nothing with the enforcer.
"""

import base64
import http.client
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.examples import seeds
from tests.paths import CHECKOUT

#: A few report whether it works at all; the others that chance does not matter.
#: A story of a minute, or two on a busy machine.
pytestmark = pytest.mark.timeout(300)
SEEDS = [pytest.param(seed + 1, marks=pytest.mark.nightly) for seed in seeds(7)]
MIGRATION_DONE = "63"
COMMANDS = Path(sys.executable).parent
#: What makes a Python behave as in FIPS mode, and note its words in a folder if one is named.
FIPS = {"PYTHONPATH": str(CHECKOUT / "tests" / "fips")}
DAEMONS = (
    "ovirt-simulator run", "ovirt-placement inventory run", "ovirt-scheduler-proxy run", "ovirt-enforcer run",
)  # fmt: skip


@dataclass(frozen=True)
class Api:
    url: str
    user: str
    password: str

    def get(self, path: str) -> ET.Element:
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        request = urllib.request.Request(
            f"{self.url}/{path}",
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/xml"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return ET.fromstring(response.read())

    def host_of_vm(self) -> dict[str, str | None]:
        """Host id by VM name; None for a VM that is down."""
        vms = {}
        for vm in self.get("vms"):
            host = vm.find("host")
            vms[vm.findtext("name")] = None if host is None else host.get("id")
        return vms

    def migrated_vms(self) -> list[str]:
        done = [event for event in self.get("events") if event.findtext("code") == MIGRATION_DONE]
        return sorted(event.findtext("vm/name") for event in done)


def ran(*command: object, where: Path = CHECKOUT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def begun(folder: Path, *words: object) -> subprocess.Popen[str]:
    """A demonstration that goes on until it is interrupted."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def kept_demo(seed: int, folder: Path) -> Iterator[tuple[Api, psutil.Process, str]]:
    """The demonstration at the end of its story, still running."""
    demo = begun(folder, "demo", "--seed", seed, "--keep")
    try:
        lines = []
        for line in demo.stdout:
            lines.append(line)
            approve(line, lines)
            found = re.search(r"API: +(\S+) \(user (\S+), password (\S+)\)", line)
            if found:
                yield Api(*found.groups()), psutil.Process(demo.pid), "".join(lines)
                break
        else:
            pytest.fail("the demonstration did not reach its end:\n" + "".join(lines))
    finally:
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
        demo.wait(30)


def approve(line: str, before: list[str]) -> None:
    """Say the word that a demonstration waits for which is kept, by the command that it offers."""
    offered = re.match(r"  \.venv/bin/ovirt-enforcer (approve \S+)$", line)
    if offered:
        (config,) = re.findall(r"export (OVIRT_PLACEMENT_CONFIG)=(\S+)", before[-2])
        assert ran(COMMANDS / "ovirt-enforcer", *offered[1].split(), **dict([config])).returncode == 0


def logs_in(reported: str) -> bool:
    """Whether the page of the first line lets the user in that stands there."""
    found = re.match(r"The page: (\S+) \(log in as (\S+) with the password (\S+)\)\n", reported)
    assert found, reported[:300]
    url, name, password = found.groups()
    form = urllib.parse.urlencode({"name": name, "password": password})
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=30)
    headers = {"Origin": f"http://{where.netloc}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", f"{where.path}log-in", form, headers)
    answer = connection.getresponse()
    connection.close()
    return answer.status == 303 and "__Secure-ovirt-placement=" in answer.headers["Set-Cookie"]


def wide_lines(reported: str) -> list[str]:
    """But those that name a file: how long its name is, the test says."""
    lines = [line for line in reported.splitlines() if not line.startswith("  export ")]
    return [line for line in lines if len(line) > 100]


@pytest.mark.parametrize("seed", SEEDS)
def test_ends_with_every_rule_satisfied_and_no_needless_migration(seed: int, short_path: Path) -> None:
    with kept_demo(seed, short_path) as (api, demo, reported):
        assert wide_lines(reported.partition("=== It keeps running")[0]) == []
        assert logs_in(reported)
        host_of_vm = api.host_of_vm()
        name_of_vm = {vm.get("id"): vm.findtext("name") for vm in api.get("vms")}
        for group in api.get("clusters/production/affinitygroups"):
            members = [name_of_vm[vm.get("id")] for vm in group.find("vms")]
            hosts = [host_of_vm[vm] for vm in members if host_of_vm[vm]]
            together = group.findtext("vms_rule/positive") == "true"
            assert len(set(hosts)) == (min(1, len(hosts)) if together else len(hosts)), group.findtext("name")

        assert host_of_vm["shop-cache"] == host_of_vm["shop-db"]
        assert host_of_vm["shop-web"] is None
        assert host_of_vm["ledger-new"] is not None
        assert host_of_vm["audit-probe"] is None

        migrated = api.migrated_vms()
        assert len(migrated) == 2
        assert migrated[0].startswith("app-")
        assert migrated[1] in {"db-1", "db-2"}

        processes = demo.children(recursive=True)
        assert len(processes) >= 4

    _, alive = psutil.wait_procs([demo, *processes], timeout=30)
    assert not alive
    assert list(short_path.iterdir()) == []


@pytest.mark.system
def test_ends_by_itself_and_shows_the_story(short_path: Path, tmp_path: Path) -> None:
    """In FIPS mode, in which Python refuses some digests, every daemon does its work as ever."""
    completed = ran(
        *(sys.executable, "-m", "demo", "--seed", "3"),
        **FIPS,
        TMPDIR=str(short_path),
        FIPS_PROCESSES=str(tmp_path),
    )
    started = "\n".join(file.read_text() for file in tmp_path.iterdir())
    assert [one for one in DAEMONS if one not in started] == []
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    before, after = completed.stdout.split("=== The enforcer")
    assert before.count("VIOLATED") == 2
    assert "VIOLATED" not in after
    assert list(short_path.iterdir()) == []
    assert wide_lines(completed.stdout) == []
    assert_explains_the_refused_start(before)
    assert_shows_steps(after.partition("=== After")[0])
    assert_offers_what_can_be_run(after.partition("=== What now")[2], short_path)


@pytest.mark.system
@pytest.mark.parametrize(
    "digest",
    ["blake2b()", "blake2b(digest_size=8)", "blake2s(b'')", "md5(b'')", "new('blake2b')", "new('MD5', b'')"],
)
def test_what_fips_mode_refuses_is_refused_here(digest: str) -> None:
    refused = ran(sys.executable, "-c", f"import hashlib; hashlib.{digest}", **FIPS)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(("ValueError", "TypeError"))


def assert_explains_the_refused_start(before: str) -> None:
    """The raw fault, plain words next to it, and a verdict for every host."""
    section = before.split("=== Start audit-probe")[1].split("\n===")[0]
    fault, explanation = section.index("Fault reason is"), section.index("In plain words:")
    verdicts = re.findall(r"^(host\d+) +(\w+)", section, re.MULTILINE)
    hosts = re.findall(r"^host\d+", before.split("affinity group", 1)[0], re.MULTILINE)
    assert fault < explanation < section.index("verdict")
    assert verdicts == [(host, "refused") for host in hosts]


def assert_shows_steps(repair: str) -> None:
    """Each planned migration was accepted and done, and the proof is the enforcer's and the engine's."""
    _, plan, gates, migrations, proof = re.split(r"^Step \d, ", repair, flags=re.MULTILINE)
    planned = re.findall(r"^ +\d+\. (\S+) from \S+ to (\S+): repairs", plan, re.MULTILINE)
    assert [vm.partition("-")[0] for vm, _ in sorted(planned)] == ["app", "db"]
    for state in ("accepted", "done"):
        asked = re.findall(rf"migration of (\S+) to (\S+) .*: {state}$", migrations, re.MULTILINE)
        assert sorted(asked) == sorted(planned)
    assert gates.startswith("gates: each migration passes ")
    assert re.search("No gate was closed|: not now: ", gates)
    assert "every rule is satisfied." in proof
    assert "0 of 8 affinity groups are violated" in proof


def assert_offers_what_can_be_run(what_now: str, folder: Path) -> None:
    """The three commands run as they stand, and each named page exists."""
    offered, on_an_engine = what_now.split("The same on a real engine")
    keep, generate, plan = (line.strip() for line in offered.splitlines() if line.startswith("  "))
    assert keep.split("#")[0].split() == ["make", "demo", "KEEP=1"]
    lines = [line.replace(".venv/bin/", f"{COMMANDS}/") for line in (generate, plan)]
    done = [ran("sh", "-c", line, where=folder) for line in lines]
    assert [one.returncode for one in done] == [0, 3], done
    assert "OVIRT_URL=" in on_an_engine
    pages = re.findall(r"[\w/-]+\.md", on_an_engine)
    assert len(pages) >= 4
    assert [page for page in pages if not (CHECKOUT / page).exists()] == []


@pytest.mark.system
def test_what_it_offers_to_try_works(short_path: Path) -> None:
    with kept_demo(1, short_path) as (_, _, reported):
        _, farewell = reported.split("=== It keeps running")
        (config,) = re.findall(r"export (OVIRT_PLACEMENT_CONFIG)=(\S+)", farewell)
        commands = re.findall(r"^  \.venv/bin/(.*)$", farewell, re.MULTILINE)
        assert len(commands) == 5
        answers = [
            ran(COMMANDS / command.split()[0], *command.split()[1:], **dict([config])) for command in commands
        ]
    assert [answer.stderr for answer in answers if "Traceback" in answer.stderr] == []
    assert [answer.returncode for answer in answers] == [1, 3, 0, 0, 0], answers
    assert "app-stray" in answers[0].stdout


@pytest.mark.parametrize(("words", "installs"), [((), [""]), (("KEEP=1",), ["", "[web]"])])
def test_it_installs_what_runs_and_says_so(words: tuple[str, ...], installs: list[str]) -> None:
    """Neither Ansible nor mypy, and the page with a kept one; pip is silent unless it fails."""
    planned = ran("make", "--dry-run", "--always-make", "demo", *words).stdout
    lines = [line for line in planned.splitlines() if " pip install " in line]
    assert ["".join(re.findall(r"\[.*?\]", line)) for line in lines] == installs
    assert all("--quiet" in line for line in lines)
    assert "Installing what it needs" in planned


@pytest.mark.system
def test_the_page_of_a_large_cluster_says_where_it_is(short_path: Path) -> None:
    page = begun(short_path, "demo", "--hosts", 20, "--vms", 200)
    try:
        lines = [page.stdout.readline() for _ in range(4)]
        assert logs_in(lines[0])
        assert lines[1].startswith("20 hosts and 200 VMs.")
    finally:
        page.send_signal(signal.SIGINT)
        page.stdout.read()
        assert page.wait(60) == 0
    # An enforcer that is ended while it starts to plan may leave the folder that multiprocessing has made.
    assert [one for one in short_path.iterdir() if not one.name.startswith("pymp-")] == []


def test_an_installation_is_one_line() -> None:
    """The commands that install are not echoed: in make's words, each begins with @."""
    recipe = (CHECKOUT / "Makefile").read_text().split("\n$(RUNS): ")[1].split("\n\n")[0]
    commands = re.findall(r"^\t(.*)", recipe, re.MULTILINE)
    assert len([line for line in commands if line.startswith("@echo")]) == 1
    assert [line for line in commands if not line.startswith("@")] == []
