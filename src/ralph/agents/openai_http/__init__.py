"""An agent that is part of ralph: it sends the prompt to any OpenAI-compatible endpoint and prints the answer as RTF1.

It runs as a process like any other agent. It only talks: it edits no files and runs no commands.
"""
