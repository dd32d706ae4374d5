"""The Python SDK's own examples, as they are but for where the engine is; it has what they name."""

from __future__ import annotations

import functools
import runpy
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ovirtsdk4
import pytest

from tests.clients.python_packages import sources
from tests.clients.sdk_stories import ARGUMENTS, PRINTED, STORIES, USUAL, WORLDS, prepare
from tests.clients.world import served

pytestmark = pytest.mark.nightly

PACKAGE = "ovirt-engine-sdk-python==4.6.3"
_CONFIGURATION = "[engine]\nengine_url = {url}\nusername = admin@internal\npassword = password\n"


class Enough(Exception):
    """An example that never ends has waited often enough."""


@pytest.fixture
def place(story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Begin an engine, and lead every connection of an example to it; its waits are short."""
    waits = iter(range(200))

    def sleep(_: float, real: Any = time.sleep) -> None:
        if next(waits, None) is None:
            raise Enough
        real(0.05)

    with served(tmp_path, world=WORLDS.get(story, USUAL)) as url:
        here = {"url": url, "ca_file": str(tmp_path / "ca.pem"), "password": "password"}
        connection = ovirtsdk4.Connection

        class Here(connection):  # type: ignore[misc,valid-type]
            def __init__(self, **given: Any) -> None:
                super().__init__(**given | here)

        configuration = tmp_path / ".config" / "ovirt.conf"
        configuration.parent.mkdir()
        configuration.write_text(_CONFIGURATION.format(url=url))
        with monkeypatch.context() as patch:
            patch.setattr(ovirtsdk4, "Connection", Here)
            patch.setattr(time, "sleep", sleep)
            patch.setenv("HOME", str(tmp_path))
            patch.chdir(tmp_path)
            with connection(**here, username="admin@internal") as prepared:
                prepare(prepared.system_service(), story)
            yield tmp_path


@pytest.mark.parametrize("story", STORIES)
def test_examples(
    story: str,
    place: Path,
    installed: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (examples,) = sources(installed, PACKAGE).glob("*/examples")
    monkeypatch.syspath_prepend(str(examples))
    for name in STORIES[story].split():
        monkeypatch.setattr(sys, "argv", [name, "-c", "engine", *ARGUMENTS.get(name, "").split()])
        run = functools.partial(runpy.run_path, str(examples / f"{name}.py"), run_name="__main__")
        if name == "poll_events":
            with pytest.raises(Enough):
                run()
        else:
            run()
    printed = capsys.readouterr().out
    assert all(words in printed for words in PRINTED.get(story, ())), printed
