"""Thin helpers for files, git, programs and text. They know nothing of ralph."""
