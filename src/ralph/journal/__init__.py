"""Runs on disk: `.ralph/runs/RUN/`, append-only and readable while it grows."""
