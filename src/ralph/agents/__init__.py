"""What ralph knows about each agent: a folder per agent with `spec.toml` and, if needed, `adapter.py`."""
