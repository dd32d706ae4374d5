"""Builds what is published: the documentation site, and the files of a release."""

import configparser
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def version(checkout: Path = CHECKOUT) -> str:
    """The one literal that packages, collection and documents go by."""
    setup = configparser.ConfigParser()
    setup.read(checkout / "setup.cfg")
    return setup["metadata"]["version"]
