"""Two enforcers on one maintenance run: the one that carries it out is stopped, and the other ends it."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ovirt_placement.store.enforcer.maintenance import MaintenanceRequest, MaintenanceStore, Work
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.launching import At, EnforcerProcess, simulator
from tests.enforcer.leaders.test_leaders import LEADS, OVER, SETTINGS, WATCHES
from tests.proxy.running import eventually
from tests.stored import run_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"))
#: A busy machine does not let the first one lose the lease before it is killed.
CALM = SETTINGS.replace("lease_seconds = 1.0", "lease_seconds = 8.0\ncooldown_after_success_seconds = 0")


#: A stall of the disk that lasts longer than the lease is no failure either: the other one takes over.
PATIENCE_SECONDS = 240.0


def test_the_command_of_one_that_was_stopped_ends_before_another_leads(tmp_path: Path) -> None:
    log = tmp_path / "steps"
    line = f"sh -c 'trap : TERM; while :; do echo $$ $(date +%s.%N) >> {log}; sleep 0.05; done'"
    short = CALM.replace("lease_seconds = 8.0", "lease_seconds = 3.0")
    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path}/store.db"
        store = MaintenanceStore(url, engine="default", patience_seconds=30)
        stack.callback(store.close)
        assert store.runs() == ()
        api = stack.enter_context(simulator(tmp_path / "engine", STATE))
        more = f'{short}[enforcer.maintenance]\ncommand = "{line}"\n'
        configuration = write_configuration(tmp_path, api, store_url=url, more=more)
        enforcers = []
        for name in ("first", "second"):
            begun = EnforcerProcess(tmp_path, name, configuration, At("", 0, signal.SIGKILL))
            enforcers.append(stack.enter_context(begun))
            eventually(lambda: (WATCHES if len(enforcers) > 1 else LEADS) in enforcers[-1].said)
        first, second = enforcers
        store.request(run_of("h1", request=MaintenanceRequest(work=Work.COMMAND)))
        eventually(log.exists, PATIENCE_SECONDS)
        first.stop()
        # What the second one says when it leads, it says after it has the lease.
        eventually(lambda: LEADS in second.said, PATIENCE_SECONDS)
        leads = time.time()
        eventually(lambda: not store.runs()[0].active, PATIENCE_SECONDS)
        first.wake()
        eventually(lambda: OVER in first.said or first.said.count(WATCHES), PATIENCE_SECONDS)
        # A step whose clock was ended with it has no time.
        steps = [words for line in log.read_text().splitlines() if len(words := line.split()) > 1]
        assert len({process for process, _ in steps}) == 1, "the command was run twice"
        assert max(float(at) for _, at in steps) < leads
        (found,) = store.runs()[0].hosts
        assert not found.draining
        assert "ended" in found.message, found
        for one in (first, second):
            one.end()
