"""A service hangs that hears nothing for a while, however often it has been too busy to hear one question."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.inventory.asking import Hangs, NoAnswer, NoService, Services
from ovirt_placement.inventory.protocol import Wake, ask
from tests.clock import Clock
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running

#: A service that is awake hears within a quarter of it, and one that is stopped does not.
SHORT_SECONDS = 2.0

#: Whether a service hears in time depends on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]


def test_who_hears_in_between_does_not_hang(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine)
    config, clock = loaded(file), Clock()
    services = Services(clock)
    with running(file) as service:
        published = inventory.known(config=config, max_age=math.inf).publication
        assert published is not None

        def wait(awake: bool) -> None:
            service.send_signal(signal.SIGCONT if awake else signal.SIGSTOP)
            ask(config.inventory.directory, Wake(published.version), SHORT_SECONDS, int, services)

        for awake in (False, True, False):  # nothing is published meanwhile
            with pytest.raises(NoAnswer):
                wait(awake)
            clock.now += 60.0
        with pytest.raises(Hangs):
            wait(awake=False)
        with pytest.raises(NoService):  # it is not asked
            wait(awake=True)
        clock.now += 60.0
        with pytest.raises(NoAnswer):
            wait(awake=True)
        ended(service)
