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


#: A module whose import goes well the first time, when the proxy learns that it cannot be shared.
ONCE = """
import ctypes, os, threading
if os.path.exists({tried!r}):
    {death}
open({tried!r}, "w").close()
threading.Thread(target=threading.Event().wait, daemon=True).start()
class Once:
    def do_filter(self, hosts, vm, args):
        return hosts
"""


def _once(place: Path, death: str) -> Path:
    once = ONCE.format(death=death, tried=str(place / "tried"))
    return write_plugins(place / "plugins", once=once, healthy=HEALTHY)


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_goes_wrong_in_each_worker_costs_its_own_units(tmp_path: Path, death: str) -> None:
    with running(_once(tmp_path, death), config=CONFIG) as proxy:
        assert proxy.filters(["Healthy"], HOSTS)["result"] == HOSTS[1:]
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert DEATHS[death] in answer["plugin_errors"]["Once"][0]
        eventually(lambda: len(proxy.workers()) == WARM)
        assert proxy.filters(["Healthy"], HOSTS)["result_code"] == 0


@pytest.mark.parametrize("death", DEATHS)
def test_an_import_that_ends_or_holds_up_its_process_costs_its_own_units(tmp_path: Path, death: str) -> None:
    defective = (
        "import ctypes, os, signal, subprocess\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'])\n"
        f"{death}\nclass Defective:\n    def do_filter(self, hosts, vm, args): pass\n"
    )
    folder = write_plugins(tmp_path / "plugins", defective=defective, healthy=HEALTHY)
    with running(folder, config=CONFIG) as proxy:
        answer = proxy.filters(["Defective", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert list(answer["plugin_errors"]) == ["Defective"]
        eventually(lambda: "defective.py: cannot be loaded: its import" in proxy.log)
        assert not [left for left in proxy.descendants() if left.name() == "sleep"]


def test_an_import_that_raises_what_has_no_text_costs_its_own_units(tmp_path: Path) -> None:
    mute = "raise type('Mute', (Exception,), {'__str__': lambda _: 1 / 0})"
    with running(_once(tmp_path, mute), config=CONFIG) as proxy:
        answer = proxy.filters(["Once", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert "could not be imported: Mute;" in answer["plugin_errors"]["Once"][0]
        assert "Traceback" not in proxy.log
