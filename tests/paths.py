"""Where things stand in the checkout, so that a test file can move without losing them."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
DATA = CHECKOUT / "tests" / "data"
VECTORS = DATA / "vectors" / "rules"
RECORDING = DATA / "recordings" / "small-4.2"
PLUGINS = CHECKOUT / "plugins"
