"""Everything that is compared, by name, and every difference that is meant."""

from __future__ import annotations

from tools.engine_conformance.cluster_units import CLUSTERS
from tools.engine_conformance.our_switches import OUR_SWITCHES
from tools.engine_conformance.our_units import OURS
from tools.engine_conformance.placing_units import FILTERS, SELECTORS, WEIGHTS
from tools.engine_conformance.switches import SWITCHES
from tools.engine_conformance.uncopied_units import UNCOPIED

UNITS = {unit.name: unit for unit in (*FILTERS, *WEIGHTS, *SELECTORS, *CLUSTERS, *OURS, *UNCOPIED)}
ALL_SWITCHES = SWITCHES | OUR_SWITCHES
