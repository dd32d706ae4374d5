"""What a failure of hosts leaves: whether the highly available VMs on them would be started again."""
