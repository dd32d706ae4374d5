"""Files of people: the state of a cluster, groups, rules and placement keys."""
