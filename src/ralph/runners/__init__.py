"""Running a command: bytes come out, and in the end how it ended. Nothing here knows any agent."""
