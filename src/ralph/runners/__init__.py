"""How a thing is run: bytes come out, and in the end how it ended. Nothing here knows any agent."""
