"""The table of settings, and reading them from flags, the environment and files."""
