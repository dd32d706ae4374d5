"""OVIRT_TOKEN: a token that somebody else has logged in for, against a simulated engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection, EngineSetupError
from ovirt_placement.engine.connection.sso import UserTokens
from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.builders import cluster, snapshot

USER, PASSWORD = "admin@internal", "password"


@pytest.fixture
def server() -> Iterator[Server]:
    running = serve(Engine.from_snapshot(snapshot(cluster("c1", name="blue")), clock=datetime.now(UTC)))
    yield running
    running.close()


@pytest.fixture
def tokens(server: Server) -> UserTokens:
    return UserTokens(EngineSettings(url=server.api_url))


def test_a_token_needs_neither_user_nor_password_and_is_left_to_its_owner(
    server: Server, tokens: UserTokens
) -> None:
    token = tokens.log_in(USER, PASSWORD)
    with EngineConnection(EngineSettings(url=server.api_url), {"OVIRT_TOKEN": token}) as connection:
        assert b"blue" in connection.get("/clusters")
    assert tokens.is_valid(token), "closing the connection must not end the caller's session"


def test_a_token_goes_before_the_password_that_is_configured(server: Server, tokens: UserTokens) -> None:
    settings = EngineSettings(url=server.api_url, username=USER)
    token = tokens.log_in(USER, PASSWORD)
    with EngineConnection(settings, {"OVIRT_TOKEN": token, "OVIRT_PASSWORD": "wrong"}) as connection:
        assert b"blue" in connection.get("/clusters")


def test_a_token_that_is_over_is_reported_and_no_password_is_tried(
    server: Server, tokens: UserTokens
) -> None:
    token = tokens.log_in(USER, PASSWORD)
    tokens.log_out(token)
    settings = EngineSettings(url=server.api_url, username=USER)
    with (
        EngineConnection(settings, {"OVIRT_TOKEN": token, "OVIRT_PASSWORD": PASSWORD}) as connection,
        pytest.raises(EngineSetupError, match="refuses the token of OVIRT_TOKEN"),
    ):
        connection.get("/clusters")


def test_what_is_no_token_is_refused_and_not_repeated() -> None:
    settings = EngineSettings(url="http://127.0.0.1:1/ovirt-engine/api")
    with pytest.raises(UserError) as refused:
        EngineConnection(settings, {"OVIRT_TOKEN": "two words"})
    assert "OVIRT_TOKEN" in str(refused.value)
    assert "two words" not in str(refused.value)
