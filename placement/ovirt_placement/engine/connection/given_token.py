"""A token of the engine that the caller has logged in for, from the variable OVIRT_TOKEN.

It is used as it is: it cannot be renewed here, and whose it is ends it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ovirt_placement.engine.connection.failures import EngineSetupError
from ovirt_placement.engine.connection.user_tokens import sendable
from ovirt_service.errors import UserError

VARIABLE: Final = "OVIRT_TOKEN"


def given_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token of the variable, if it is set. Raises `UserError` for one that no header can hold."""
    token = environment.get(VARIABLE)
    if not token:
        return None
    if not sendable(token):
        raise UserError(
            f"{VARIABLE}: is no token of the engine: it has spaces, or other characters than ASCII"
        )
    return token


class GivenToken:
    """What stands for a log-in of one session."""

    def __init__(self, token: str, address: str) -> None:
        self._token = token
        self._address = address
        self._used = False

    def log_in(self) -> str:
        """Give the token; raises `EngineSetupError` the second time: the engine does not take it then."""
        if self._used:
            raise EngineSetupError(
                f"{self._address}: the engine refuses the token of {VARIABLE}: it is over, or of another"
                " engine; log in again, or unset the variable"
            )
        self._used = True
        return self._token

    def log_out(self, token: str) -> None:
        """Leave the session to the caller, who may need it still."""
