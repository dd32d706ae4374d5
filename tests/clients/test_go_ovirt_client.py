"""go-ovirt-client, the client of OpenShift's installer: its own tests, as they are, against an engine.

Two of them wait for the client to give up what is refused, which it does after some ten minutes. They run by
themselves, with the client's waits a hundredth as long.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.elsewhere import rest_of_the_internet
from tests.clients.golang import Go

pytestmark = pytest.mark.nightly

PACKAGE = "github.com/ovirt/go-ovirt-client/v3"

#: Its tests that are left out, and why.
LEFT_OUT = {
    "contents of disks": r"TestImageDownload",
    "what a guest reports of its network": r"TestVMIPAddressReporting$",
    "multicast addresses for NICs, which an engine refuses": r"TestVMNIC(Update|WithMacCreation)$",
}
GIVE_UP = r"TestCannotRemoveTemplate"
#: The client's first wait, after which each is twice as long, as it is and as it is here.
FIRST_WAIT = "waitTime := time.Second\n", "waitTime := time.Second / 100\n"


class Suite:
    """Its tests, built in a copy of the module, which is where they must run."""

    def __init__(self, go: Go, place: Path) -> None:
        shutil.copytree(go.source(PACKAGE), place, dirs_exist_ok=True)
        self._go, self._place, self._program = go, place, place / "suite.test"

    def change(self, file: str, before: str, after: str) -> None:
        text = (self._place / file).read_text()
        assert text.count(before) == 1
        (self._place / file).write_text(text.replace(before, after))

    def run(self, wanted: Callable[[str], bool], engine: str, folder: Path) -> dict[str, str]:
        """Run the tests of these names; gives the outcome of each: PASS, FAIL, SKIP, or none."""
        self._go.run("test", "-c", "-o", str(self._program), ".", folder=self._place)
        listed = self._call({}, "-test.list=^Test").stdout.splitlines()
        names = [name for name in listed if name.startswith("Test") and wanted(name)]
        with rest_of_the_internet(folder) as proxy:
            environment = {
                "OVIRT_URL": engine,
                "OVIRT_USERNAME": "admin@internal",
                "OVIRT_PASSWORD": "password",
                "OVIRT_CAFILE": str(folder / "ca.pem"),
                "HTTPS_PROXY": proxy,
            }
            done = self._call(environment, "-client=live", "-test.v", f"-test.run=^({'|'.join(names)})$")
        outcomes = {name: word for word, name in re.findall(r"^--- (\w+): (\w+)", done.stdout, re.MULTILINE)}
        if set(outcomes.values()) != {"PASS"}:
            print(done.stdout[-50_000:], done.stderr)
        return dict.fromkeys(names, "none") | outcomes

    def _call(self, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._program), *options],
            cwd=self._place,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=600,
        )


def _left_out(name: str) -> bool:
    return any(re.match(each, name) for each in LEFT_OUT.values())


def test_its_own_suite(installed: Path, engine: str, folder: Path) -> None:
    suite = Suite(Go(installed), installed / "go-ovirt-client")
    outcomes = suite.run(lambda name: not _left_out(name) and not re.match(GIVE_UP, name), engine, folder)
    assert {name: word for name, word in outcomes.items() if word != "PASS"} == {}
    assert len(outcomes) > 60


def test_what_is_refused_for_good(installed: Path, engine: str, folder: Path) -> None:
    suite = Suite(Go(installed), installed / "go-ovirt-client-quick")
    suite.change("retry.go", *FIRST_WAIT)
    outcomes = suite.run(lambda name: bool(re.match(GIVE_UP, name)), engine, folder)
    assert outcomes == dict.fromkeys(outcomes, "PASS")
    assert len(outcomes) == 2
