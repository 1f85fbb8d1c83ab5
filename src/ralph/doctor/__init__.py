"""What `ralph doctor` checks: the agents, their environment, and one real answer."""
