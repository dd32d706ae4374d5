"""Orders are taken if the enforcer that leads acts, whatever the file says that it will read next time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.on_request.orders import check_acts
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement import config as configuration
from ovirt_service.errors import UserError
from tests.configuration import write_configuration
from tests.enforcer.on_request.leading import lead

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
