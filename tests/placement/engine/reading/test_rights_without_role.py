"""Who has no role is not taken for one whose token is void: the page names the role that is missing."""

from __future__ import annotations

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.sso import NoRole, Refused, UserTokens
from ovirt_placement.engine.reading.rights import read_rights
from tests.placement.engine_server import EngineServer, serving

_NO_ROLE = b"<html><body>The user a@b with profile [b] is not authorized to perform login</body></html>"
_VOID = b"<html><body>invalid_grant: The provided authorization grant has expired.</body></html>"


@pytest.mark.parametrize(("body", "no_role"), [(_NO_ROLE, True), (_VOID, False)])
def test_a_user_without_a_role(body: bytes, no_role: bool) -> None:
    server = EngineServer(answer=lambda asked: (401, body))
    server.tokens.add("token")
    with serving(server), pytest.raises(Refused) as refused:
        read_rights(UserTokens(EngineSettings(url=server.url)), "token")
    assert isinstance(refused.value, NoRole) == no_role
