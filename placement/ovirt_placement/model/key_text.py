"""What the name of a placement key, and a word in place of its number, may be."""

from __future__ import annotations

import unicodedata
from typing import Final

from ovirt_placement.model.placement_keys import PlacementKey
from ovirt_service.errors import UserError

MOST_CHARACTERS: Final = 255
#: Control and format characters, halves of characters, ends of lines.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def check_text(key: PlacementKey) -> None:
    """Raise `UserError` if nobody could read the key's name, or its value is endless."""
    for kind, text in (("name", key.name), ("value", key.value)):
        if isinstance(text, str) and len(text) > MOST_CHARACTERS:
            raise UserError(f"{kind}: {len(text):,} characters are too many: at most {MOST_CHARACTERS}")
    if any(unicodedata.category(one) in _UNSEEN for one in key.name):
        raise UserError(f"name: {key.name!a} holds characters that cannot be seen")
