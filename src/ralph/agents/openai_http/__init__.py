"""An agent of ralph's own: a prompt to any OpenAI-compatible endpoint, its words back as RTF1.

A process like any other agent, so that deadlines, killing and the journal are the runner's as always. It only
speaks: it edits no files and runs no commands.
"""
