"""Modules whose import goes wrong in some processes and not in others: they cost no units but their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..running import eventually, running, write_plugins
from .watching import CONFIG, HEALTHY, HOSTS, WARM

pytestmark = pytest.mark.system

#: What a module's import may do to its process, and what becomes of a call to a unit of such a module.
DEATHS = {
    "os._exit(7)": "ended its worker process with exit status 7",
    "ctypes.string_at(0)": "crashed its worker process (SIGSEGV)",
    "while True: pass": "did not answer in time (1 s)",
}


#: A module whose import goes well the first time, when the proxy tries it out.
ONCE = """
import ctypes, os, threading
if {condition}:
    {death}
open({tried!r}, "w").close()
{further}
class Once:
    def do_filter(self, hosts, vm, args):
        return hosts
"""
A_THREAD = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


def _once(place: Path, death: str, condition: str = "", further: str = "") -> Path:
    tried = str(place / "tried")
    condition = condition or f"os.path.exists({tried!r})"
    once = ONCE.format(condition=condition, death=death, tried=tried, further=further)
    return write_plugins(place / "plugins", once=once, healthy=HEALTHY)


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_each_worker_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with running(_once(tmp_path, death, further=A_THREAD), config=CONFIG) as proxy:
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert DEATHS[death] in answer["plugin_errors"]["Once"][0]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_ever_after_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with running(_once(tmp_path, death), config=CONFIG) as proxy:
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert list(answer["plugin_errors"]) == ["Once"]
        eventually(lambda: "once.py: cannot be loaded: its import" in proxy.log)


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_the_parent_only_is_left_to_the_workers(
    tmp_path: Path, death: str
) -> None:
    folder = _once(tmp_path, death, condition="os.getsid(0) != os.getpid()")
    with running(folder, config=CONFIG) as proxy:
        assert proxy.filters(["Once", "Healthy"], HOSTS)["result_code"] == 0
        eventually(lambda: "once.py could be loaded once but not twice" in proxy.log)


def test_an_import_that_raises_what_has_no_text_costs_its_own_units(tmp_path: Path) -> None:
    mute = "raise type('Mute', (Exception,), {'__str__': lambda _: 1 / 0})"
    with running(_once(tmp_path, mute), config=CONFIG) as proxy:
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert "could not be imported: Mute;" in answer["plugin_errors"]["Once"][0]
        eventually(lambda: "once.py: cannot be loaded: loaded once but not twice: Mute" in proxy.log)
        assert "Traceback" not in proxy.log
