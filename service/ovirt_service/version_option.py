"""The option `--version`, which finds the version only where it is asked for: that takes long to load."""

from __future__ import annotations

import argparse
from typing import Any


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_Version)


class _Version(argparse._VersionAction):
    """Known for what it is to what makes completions of parsers."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('ovirt-placement')}")
        parser.exit()
