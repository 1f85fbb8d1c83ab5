"""The fault suite: what goes wrong in a night, made to happen to the real command, and what came of it."""
