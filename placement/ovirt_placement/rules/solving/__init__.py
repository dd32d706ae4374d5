"""VMs on hosts, together, apart and allowed: one form of the problem, and what answers it."""
