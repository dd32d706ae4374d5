"""What rules are made of: requests and verdicts, constraints, ranks, where VMs are, and what they take."""
