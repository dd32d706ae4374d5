"""Everything that is compared, by name, and every difference that is meant."""

from __future__ import annotations

from tests.engine.cluster_units import CLUSTERS
from tests.engine.our_switches import OUR_SWITCHES
from tests.engine.our_units import OURS
from tests.engine.placing_units import FILTERS, SELECTORS, WEIGHTS
from tests.engine.switches import SWITCHES
from tests.engine.uncopied_units import UNCOPIED

UNITS = {unit.name: unit for unit in (*FILTERS, *WEIGHTS, *SELECTORS, *CLUSTERS, *OURS, *UNCOPIED)}
ALL_SWITCHES = SWITCHES | OUR_SWITCHES
