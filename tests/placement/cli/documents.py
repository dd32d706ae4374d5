"""Reads an answer in JSON as a program would: held against the schema that is shipped, names left out."""

import json
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator, meta

from tests.paths import CHECKOUT

SCHEMA = CHECKOUT / "docs" / "json.schema.json"


def parsed(text: str) -> Any:
    """The answer; fails unless it meets the schema."""
    return defined(text, None)


def defined(text: str, definition: str | None) -> Any:
    """What was printed; fails unless it is as a definition of the schema has it, or of its kind."""
    document = json.loads(text)
    _validator(definition).validate(document)
    return document


def plain(text: str) -> Any:
    """The answer with ids in place of what has an id and a name; fails unless it meets the schema."""
    return without_names(parsed(text))


def without_names(found: Any) -> Any:
    if isinstance(found, dict):
        if found.keys() == {"id", "name"}:
            return found["id"]
        return {key: without_names(value) for key, value in found.items()}
    return [without_names(one) for one in found] if isinstance(found, list) else found


@cache
def _validator(definition: str | None) -> Draft202012Validator:
    schema = dict(_schema())
    if definition is not None:
        del schema["oneOf"]
        schema["$ref"] = f"#/$defs/{definition}"
    return Draft202012Validator(schema)


@cache
def _schema() -> dict[str, Any]:
    """Stricter than what is shipped: nothing may stand in an answer that the schema does not name."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text())
    for known in schema["$defs"].values():
        if "properties" in known:
            known["additionalProperties"] = False
    meta.validate(schema)
    return schema
