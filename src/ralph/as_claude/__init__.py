"""Emulates Claude Code with any agent, for tools that can only drive Claude (`ralph as-claude`)."""
