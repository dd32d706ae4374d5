"""Why a rule stays broken: the smallest set of rules, VMs and limits that blocks it, as sentences."""
