"""What `ralph doctor` looks at: the agents, what is around them, and one real answer."""
