"""What is known about each agent CLI, as data: a TOML file an agent in `builtin/`."""
