"""The rooms of the source tree, in order: a room imports only from rooms above it.

`tests/test_architecture.py` enforces it, and `make docs` writes the table in docs/explanation/architecture.md from it.
"""

ROOMS = {
    "errors": "the exceptions whose text the user reads",
    "system": "files, folders, git, programs, the terminal: thin helpers that know nothing of ralph",
    "transcripts": "events, the adapter protocol, framing, and formats that belong to no single agent; no I/O",
    "agents": "one folder per agent with its spec and adapter; the spec's schema, detection, versions, login",
    "runners": "processes and PTYs, the keeper, ending a whole process tree",
    "masking": "finding and replacing secrets in text, bytes and events",
    "config": "the table of settings, `ralph.yml`, layers, and where each value came from",
    "trust": "what a repository brings that needs approval, and what its user has approved",
    "tree": "what differs on disk: snapshots of a working tree, and what changed between them",
    "journal": "writing and reading runs, locks, requests from other terminals",
    "judging": "what did an iteration amount to? Observation, signals, verdict, costs",
    "launching": "what is about to run: agent, command line, environment, prompt",
    "dialects": "other people's conventions as settings and launchers",
    "planning": "from a command line to a launch: settings, approval, fallbacks",
    "loop": "the loop and its policy: what comes next, and why",
    "ui": "screens; they see events and nothing else",
    "as_claude": "`ralph as-claude`: any agent, emulating Claude Code",
    "doctor": "could a run start here?",
    "testing": "the demo agent, the scripted model and other things that users need in their tests too",
    "cli": "one module per command, imported late",
}
