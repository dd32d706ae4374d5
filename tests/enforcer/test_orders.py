"""Orders are taken if the enforcer that leads acts, whatever the file says that it will read next time."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ovirt_enforcer.orders import check_acts, check_running
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.sql.connections import Fault
from ovirt_service.errors import UserError
from tests.configuration import write_configuration
from tests.enforcer.leading import lead

OBSERVES = 'ovirt-enforcer is in observe mode: set mode = "approve" in [enforcer], and restart it'


def refusal(folder: Path, mode: str | None) -> str | None:
    """Why orders are refused on a machine whose file says this; None if they are taken."""
    more = "" if mode is None else f'[enforcer]\nmode = "{mode}"\n'
    config = configuration.load(write_configuration(folder, "http://127.0.0.1:9/ovirt-engine/api", more=more))
    try:
        check_acts(config, Mode.APPROVE)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("mode", "found"), [(None, OBSERVES), ("observe", OBSERVES), ("approve", None)])
def test_where_none_leads_the_file_counts(tmp_path: Path, mode: str | None, found: str | None) -> None:
    assert refusal(tmp_path, mode) == found


@pytest.mark.parametrize("mode", [None, "observe", "enforce"])
def test_where_one_leads_its_mode_counts(tmp_path: Path, mode: str | None) -> None:
    lead(tmp_path, EnforcerSettings(mode=Mode.OBSERVE))
    assert refusal(tmp_path, mode) == OBSERVES
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    assert refusal(tmp_path, mode) is None


def test_where_one_led_that_cannot_write_any_more_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configuration.load(write_configuration(tmp_path, "http://127.0.0.1:9/ovirt-engine/api"))
    with pytest.raises(UserError, match="no enforcer runs for engine default: start it"):
        check_running(config)
    lead(tmp_path, EnforcerSettings(mode=Mode.ENFORCE))
    check_running(config)
    with closing(LeaseStore(config.store.url, engine=config.engine.name)) as leases:
        leases.release(1)
    full = Fault("no room is left on its file system", "make room there")
    monkeypatch.setattr("ovirt_placement.store.sql.connections.of_file_system", lambda path: full)
    with pytest.raises(UserError, match="none leads and cannot write the store: no room is left") as refused:
        check_running(config)
    assert "no enforcer runs" not in str(refused.value)
