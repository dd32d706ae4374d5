"""The command itself: real processes, real signals."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.model import state_file
from ovirt_simulator import cli
from ovirt_simulator.generate import Sizes, generate

COMMAND = (sys.executable, "-c", "import sys; from ovirt_simulator.cli import main; sys.exit(main())")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the simulator, and give its process and URL once it is ready."""
    with subprocess.Popen(
        [*COMMAND, "run", "--listen", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            ready = process.stdout.readline()
            assert ready.startswith("ovirt-simulator: listening on http://127.0.0.1:")
            yield process, ready.split()[-1]
        finally:
            process.kill()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(state_file.dumps(generate(Sizes(hosts=3, vms=8, groups=1), 1)))
    return path


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=20) as answer:
        return json.loads(answer.read() or b"null")


@pytest.mark.system
def test_it_serves_its_state_and_ends_cleanly(state: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with running("--state", str(state), "--time-scale", "0") as (process, url):
            served = ask(f"{url}/simulator/state")
            assert [vm["name"] for vm in served["vms"]] == [f"vm-{n:05}" for n in range(1, 9)]
            process.send_signal(number)
            assert (process.wait(20), process.stdout.read()) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--state", "{tmp}/absent.json"], ["absent.json"]),
        (["run", "--state", "{tmp}/bad.json"], ["bad.json"]),
        (["run", "--state", "{state}", "--listen", "nowhere"], ["nowhere", "HOST:PORT"]),
        (["run", "--state", "{state}", "--tls-key", "k.pem"], ["--tls-certificate"]),
        (
            ["run", "--state", "{state}", "--tls-key", "{tmp}/k.pem", "--tls-certificate", "{tmp}/c.pem"],
            ["c.pem"],
        ),
        (["run", "--state", "{state}", "--proxy", "localhost:18781"], ["--proxy", "http://"]),
    ],
)
def test_mistakes_are_reported_in_one_line(
    arguments: list[str], words: list[str], state: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("{")
    filled = [argument.format(tmp=tmp_path, state=state) for argument in arguments]
    done = subprocess.run([*COMMAND, *filled], capture_output=True, text=True, timeout=60)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout, line.startswith("ovirt-simulator: ")) == (2, "", True)
    assert [word for word in words if word not in line] == []


def test_generate_prints_a_state_file(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["generate", "--hosts", "4", "--vms", "20", "--groups", "3", "--seed", "7"]) == 0
    assert state_file.loads(capsysbinary.readouterr().out) == generate(Sizes(hosts=4, vms=20, groups=3), 7)


def test_without_what_serving_needs_it_draws_clusters_and_says_so(state: Path) -> None:
    program = f"import sys; sys.modules['werkzeug'] = None\n{COMMAND[2]}"
    lacking = [sys.executable, "-c", program]
    drawn = subprocess.run([*lacking, "generate"], capture_output=True, timeout=60)
    assert drawn.returncode == 0, drawn.stderr
    refused = [*lacking, "run", "--state", str(state)]
    done = subprocess.run(refused, capture_output=True, text=True, timeout=60)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout, line.startswith("ovirt-simulator: ")) == (2, "", True)
    assert "pip install ./simulator" in line


@pytest.mark.parametrize(
    "arguments",
    [
        *("generate --hosts -3", "generate --vms x"),
        *("run --state s --time-scale -1", "run --state s --http-threads 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments.split())
    assert re.search("number, at least [01]", capsys.readouterr().err)
