"""Each command has given back its sessions in the engine when it ends: answered, mistaken or refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.cli.main import main as placement
from ovirt_simulator.http.server import Server
from ovirt_simulator.http.server import serve as serve_engine
from tests.builders import APART, cluster, group, host, vm
from tests.configuration import write_configuration
from tests.simulator.core import engines

pytestmark = pytest.mark.system

_PLACEMENT = (
    *("violations", "why a", "why no-such-vm", "where a", "conflicts", "ha-check", "status", "doctor"),
    *("snapshot", "what-if --down h1", "groups list", "groups lost", "groups remove no-such-group"),
    *("groups add more --cluster blue --vm a --vm b --vms-rule negative", "groups remove apart"),
    *("rules list", "rules check", "keys list", "keys explain a", "keys check"),
    *("setup --dry-run", "setup --undo --policy none"),
)
_ENFORCER = (
    *("plan", "plan --strategy greedy", "simulate-policy", "maintenance plan h1", "why-not a", "make-room a"),
    *("history", "pause", "resume", "approve --list"),
)
COMMANDS = [*((placement, line) for line in _PLACEMENT), *((enforcer, line) for line in _ENFORCER)]


@pytest.fixture
def server() -> Iterator[Server]:
    state = (
        cluster(name="blue", ha_reservation=True),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        group("apart", APART, "a b"),
    )
    with closing(serve_engine(engines.engine(*state))) as running:
        yield running


@pytest.mark.parametrize("user", ["admin", "reader", "user"])
def test_no_command_leaves_a_session(
    server: Server, tmp_path: Path, user: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_configuration(tmp_path, server.api_url, user=f"{user}@internal")
    assert placement(["store", "init", "--config", str(config)]) == 0
    left, asked = {}, 0
    for main, line in COMMANDS:
        main([*line.split(), "--config", str(config)])
        if number := server.tokens.revoke_all():
            left[line] = number
        complaint = capsys.readouterr().err
        assert "Traceback" not in complaint, line
        asked += "unrecognized arguments" not in complaint
    assert left == {}
    assert asked == len(COMMANDS)
