"""Who runs a command: the person, not the user that sudo or su made of them."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from ovirt_service import identity
from ovirt_service.legible import unbroken

#: What the kernel remembers of the login that a process comes from, through sudo and su; this if of none.
_LOGIN = Path("/proc/self/loginuid")
_NONE = 2**32 - 1


def login_name() -> str:
    """The login of the user who runs this; with sudo and su, of the user who called these."""
    with suppress(OSError, ValueError, KeyError):
        number = int(_LOGIN.read_text())
        if number != _NONE:
            return pwd.getpwuid(number).pw_name
    # Only root is believed: all others could write there what they like.
    user = os.environ.get("SUDO_USER") if identity.CALLER == 0 else None
    try:
        return unbroken(user) if user else pwd.getpwuid(identity.CALLER).pw_name
    except KeyError:
        return f"uid {identity.CALLER}"
