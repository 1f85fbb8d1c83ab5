"""What an agent does to the repository so that its changes are not seen, or so that looking at them hangs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from faults.case import Fault, add, fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.place import Place

_DONE = "say('<promise>COMPLETE</promise>')"
#: An agent that hides a change outside the allowed paths is not believed.
_SEEN = "2 limit · ok; seen"
_HIDDEN = {
    "--assume-unchanged": "git update-index --assume-unchanged PROMPT.md && echo x >> PROMPT.md",
    "--skip-worktree": "git update-index --skip-worktree PROMPT.md && echo x >> PROMPT.md",
    "info/exclude": "mkdir -p .git/info && echo '*' > .git/info/exclude && echo x > new",
    "core.excludesFile": "echo '*' > .git/mine && git config core.excludesFile .git/mine && echo x > new",
    "a new .gitignore": "mkdir sub && echo '*' > sub/.gitignore && echo x > sub/new",
    "git replace": "o=$(git rev-parse HEAD); echo x > new; git add .; git commit -qm n; git replace $o HEAD",
    "a deleted .git": "echo x > new && rm -rf .git",
    "a re-created .git": "echo x > new && rm -rf .git && git init -q && git add . && git commit -qm n",
    "an amended and pruned history": "echo x > new; git add .; git commit -q --amend -m n; "
    "git reflog expire --expire=now --all; git gc -q --prune=now",
    "a nested repository": "git init -q nested && echo x > nested/new",
    "a name like the journal's": "echo x > .ralph/latest.sh",
    "the time of the last change": "touch -r PROMPT.md .git/t; sed -i s/Do/DO/ PROMPT.md; touch -r .git/t PROMPT.md",
}


def _shell(command: str) -> str:
    return f"os.system({command!r}); {_DONE}"


def _hidden(command: str) -> Callable[[Place], None]:
    def make(at: Place) -> None:
        at.env |= {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        record = at.see(at.run(at.agent(_shell(command)), "1", "--allowed-paths", "src").ended())
        at.check("seen", "outside the allowed paths" in at.screen.read_text(errors="replace"), record.root)

    return make


for _name, _command in _HIDDEN.items():
    add(Fault(f"hides a change with {_name}", _SEEN, _hidden(_command)))


@fault("filters, hooks and a file monitor in the repository's configuration", "0 complete · ok; none of them ran")
def programs(at: Place) -> None:
    trace = at.root / "ran"
    program = at.root / "program"
    program.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    program.chmod(0o755)
    (at.repo / ".gitattributes").write_text("* filter=a=b\n")
    with (at.repo / ".git" / "config").open("a") as config:
        config.write(f'[filter "a=b"]\n clean = {program}\n process = {program}\n')
        config.write(f"[core]\n fsmonitor = {program}\n hooksPath = {at.root}\n[alias]\n lfs = !{program}\n")
    at.see(at.run(at.agent(f"open('PROMPT.md', 'a').write('x'); {_DONE}")).ended())
    at.check("none of them ran", not trace.exists())


def _special(*make: str) -> Callable[[Place], None]:
    def fault_of(at: Place) -> None:
        for command in make:
            subprocess.run(["sh", "-c", command], cwd=at.repo, check=True)
        record = at.see(at.run(at.agent(f"open('new', 'w').write('x'); {_DONE}")).ended(20))
        files = (record.end or {}).get("files", [])
        at.check("the new file is seen", "new" in files, files)

    return fault_of


for _name, _commands in {
    "a pipe in the place of .gitignore": ("mkfifo .gitignore",),
    "a pipe in the place of .gitattributes": ("mkfifo .gitattributes",),
    "a pipe and a socket in the tree": ("mkfifo pipe", "python3 -c \"import socket as s; s.socket(1).bind('sock')\""),
    "sparse files of 1 TB": ("for n in 1 2 3 4 5 6 7 8; do truncate -s 1T sparse$n; done",),
}.items():
    add(Fault(_name, "0 complete · ok; the new file is seen", _special(*_commands), bound=30.0))
