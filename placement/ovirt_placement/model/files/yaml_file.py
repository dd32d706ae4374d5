"""Reads and writes the files of administrators: YAML, or JSON, of a known form and format."""

import contextlib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from ovirt_placement.model.record import Struct
from ovirt_service import files
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError, placed

#: A hundred thousand keys are 10 MiB.
_MOST_MIB = 64
FORMAT = 1


class Formatted(Struct, frozen=True):
    """The content of a file, which says in which format it is."""

    format: int = FORMAT


File = TypeVar("File", bound=Formatted)
Content = TypeVar("Content")


def load(path: Path, what: str, loads: Callable[[bytes], Content]) -> Content:
    """Read a file of this kind and decode it; `what` it holds is named where it cannot be read.

    Raises `UserError` with the name of the file if it cannot be read, or as `loads` does.
    """
    content = files.read_named(path, what, _MOST_MIB)
    with placed(f"{path}: "):
        return loads(content)


def decode(content: bytes, form: type[File]) -> File:
    """Decode a file's content. Raises `UserError`, with the place, if it has another form or format."""
    try:
        file = msgspec.convert(_parsed(content), form, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, form)) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"not YAML: {_reported(error)}") from None
    except RecursionError:
        raise UserError("not YAML: nested too deeply") from None
    if file.format != FORMAT:
        raise UserError(f"format: this release reads format {FORMAT}, not {file.format}")
    return file


def encode(content: object) -> str:
    """Encode what `decode` reads."""
    # In ASCII: some characters that YAML takes for line ends are not escaped otherwise.
    return yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=110)


def _parsed(content: bytes) -> object:
    """JSON is read as JSON: YAML allows nearly all of it, but takes a few characters otherwise."""
    if content.lstrip().startswith(b"{"):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(content)
    return _Loader(content).get_single_data()


def _reported(error: Exception) -> str:
    """The line and column where the YAML is invalid, and why."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


class _Loader(yaml.SafeLoader):
    """Refuses what the plain loader passes over in silence: a word that stands twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        words = [self.construct_object(key, deep=True) for key, _ in node.value]
        for word, (key, _) in zip(words, node.value, strict=True):
            if words.count(word) > 1:
                raise yaml.constructor.ConstructorError(None, None, f'"{word}" stands twice', key.start_mark)
        return super().construct_mapping(node, deep)
