"""Questions about many hosts: the worst device and why it differs, budgets of a fleet, and peaks over days."""
