"""Stories of clusters that break, and what the enforcer says and does in each."""
