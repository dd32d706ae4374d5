"""Why a rule is not repaired: the smallest set of rules, VMs and limits that blocks it."""
