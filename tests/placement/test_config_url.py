"""Secrets: no password is printed, and nobody else can have written what we go by."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from ovirt_placement import config
from ovirt_placement.config import EngineSettings
from ovirt_placement.config_url import check_url, exposes
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.engine.connection.log_ins import read_password
from ovirt_service.errors import UserError
from tests.configuration import write_configuration, write_password


@pytest.mark.parametrize(
    "url",
    [
        "https://admin:secret@engine/ovirt-engine/api",
        "https://engine:port/ovirt-engine/api",
        "https://engine:99999/ovirt-engine/api",
        "https://engine:0/ovirt-engine/api",
        "https://[::1/ovirt-engine/api",
        "https://engine/ovirt-engine/api\n",
        "ftp://engine",
        "https://",
    ],
)
def test_a_url_that_is_none_is_reported_in_one_line_without_its_password(tmp_path: Path, url: str) -> None:
    file = write_configuration(tmp_path, url.replace("\n", "\\n"))
    with pytest.raises(UserError) as refusal:
        config.load(file, {})
    assert "secret" not in str(refusal.value)
    assert str(refusal.value).isprintable()
    with pytest.raises(UserError):
        check_url(url)


@pytest.mark.parametrize(
    ("url", "insecure", "exposed"),
    [
        ("https://engine/ovirt-engine/api", False, ""),
        ("https://engine/ovirt-engine/api", True, "any server that answers"),
        ("http://engine/ovirt-engine/api", False, "in clear"),
        ("http://127.0.0.1:8080/ovirt-engine/api", True, ""),
        ("http://localhost/ovirt-engine/api", False, ""),
    ],
)
def test_who_could_learn_the_password_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str, insecure: bool, exposed: str
) -> None:
    assert exposed in exposes(url, insecure=insecure)
    file = write_password(tmp_path)
    settings = EngineSettings(
        url=f"{url}/{tmp_path.name}", username="me", password_file=file, insecure=insecure
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            connect(settings)
    assert len(caplog.records) == bool(exposed)
    assert exposed in caplog.text


def test_a_configuration_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    file = write_configuration(tmp_path, "https://engine/ovirt-engine/api")
    file.chmod(0o666)
    with pytest.raises(UserError, match="everybody may change the configuration: chmod o-w"):
        config.load(file, {})
    file.chmod(0o664)
    assert config.load(file, {}).engine.username == "admin@internal"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_password_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    file = write_password(tmp_path)
    os.chown(file, 65534, -1)
    with pytest.raises(UserError, match=f"belongs to another user .* or chown 0 {file}$"):
        read_password(EngineSettings(password_file=file), {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_is_not_advised_to_take_a_services_password_away(tmp_path: Path) -> None:
    """As it was of the inventory's user alone, who goes on reading it."""
    file = write_password(tmp_path)
    os.chown(file, 65534, 65534)
    with pytest.raises(UserError, match=f"chown root {file} && chmod 640 {file}, which its group"):
        read_password(EngineSettings(password_file=file), {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_lets_the_group_of_the_services_read_the_password_and_nothing_more(tmp_path: Path) -> None:
    file = write_password(tmp_path)
    settings = EngineSettings(password_file=file)
    os.chown(file, 0, 65534)
    file.chmod(0o640)
    assert read_password(settings, {}).text
    for mode in (0o660, 0o650, 0o644):
        file.chmod(mode)
        with pytest.raises(UserError, match="others may read the password"):
            read_password(settings, {})
