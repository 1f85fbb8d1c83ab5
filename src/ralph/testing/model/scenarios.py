"""The scenarios that the model knows by name."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

from ralph.testing.model.script import Act, Cut, Failure, Hang, Refuse, Scenario, Shell, Turn, When, Write

MARKER = "<promise>COMPLETE</promise>"
FILE = "hello.txt"
CONTENT = "written by the scripted model\n"
#: takes a minute; not `sleep`, which Claude refuses to run
LONG_COMMAND = "timeout 60 tail -f /dev/null"

_LOOK = Turn("First I look around.", "What is here? List the files, then write one.", (Shell("ls"),))
_WRITE = Turn("Now the file.", acts=(Write(FILE, CONTENT),))
_FINISH = Turn(f"The files are listed and {FILE} is written.\n\n{MARKER}\n", "Everything was done: say so.")
_WORK = (_LOOK, _WRITE, _FINISH)

_SIGNS = "😀 👩‍💻 🇩🇪 e\u0301 ❤\ufe0f · 日本語 中文 한국어 العربية עברית"
_CONTROLS = "red \x1b[31mword\x1b[0m, title \x1b]0;t\x07, bell \x07, back \x08, nel \x85, ls \u2028, ps \u2029"
_LINE_ENDS = "ends with crlf\r\nand again\r\nonly cr\rthen this"
_LOOKS_LIKE_AN_EVENT = '{"type":"result","subtype":"success","is_error":false,"result":"not an event"}'
_ODD = "\n".join((_SIGNS, _CONTROLS, _LINE_ENDS, _LOOKS_LIKE_AN_EVENT))
_ODD_OUTPUT = (
    r"printf '\033[32mgreen\033[0m \360\237\230\200\r\nnot utf-8: \377\376 end\n'; "
    r"printf 'on stderr \342\234\223\n' >&2"
)


def _long_line(size: int) -> str:
    """A line without repetition, which some agents take for a model in a loop."""
    blocks = (base64.b64encode(hashlib.sha512(str(n).encode()).digest()).decode() for n in range(size // 86 + 1))
    return "".join(blocks)[:size]


def _first(*acts: Act) -> tuple[Turn, ...]:
    """The standard work, but with another first step than `ls`."""
    return (replace(_LOOK, acts=acts), _WRITE, _FINISH)


def _refusing(about: str, failure: Failure, when: When = When.ALWAYS) -> Scenario:
    return Scenario(about, _WORK, Refuse(failure, when))


SCENARIOS: dict[str, Scenario] = {
    "success": Scenario("thinks, speaks, runs `ls`, writes a file, finishes with the marker on its own line", _WORK),
    "failtool": Scenario(
        "a command that exits with 3, then as success", _first(Shell("echo partly; echo wrong >&2; exit 3"))
    ),
    "quote": Scenario(
        "the marker in thinking, in a command's output and quoted in prose, but it does not finish",
        (
            Turn("I look at the instructions.", f"When all is done I must say {MARKER}.", (Shell(f"echo '{MARKER}'"),)),
            Turn(f"There is more to do, so I do not say `{MARKER}` or {MARKER} yet."),
        ),
    ),
    "error401": _refusing("every request is refused: the key is wrong", Failure.AUTH),
    "error429": _refusing("every request is refused: too many, with retry-after", Failure.RATE_LIMIT),
    "error500": _refusing("every request fails in the provider", Failure.SERVER),
    "quota": _refusing("every request is refused: the quota is used up", Failure.QUOTA),
    "ctxlimit": _refusing("every request is refused: longer than the model's context", Failure.CONTEXT),
    "flaky": _refusing("the first request fails in the provider, then as success", Failure.SERVER, When.FIRST),
    "cut": Scenario("every streamed answer breaks off in the middle", _WORK, Cut()),
    "hang": Scenario("requests are taken and never answered", _WORK, Hang()),
    "slow": Scenario("as success, a quarter of a second between two pieces", _WORK, pace=0.25),
    "longtool": Scenario("a command that takes a minute, then as success", _first(Shell(LONG_COMMAND))),
    "unicode": Scenario(
        "many scripts, escapes, CR LF, U+2028, an event look-alike, a line of 200 KB, output that is not UTF-8",
        (
            Turn(_ODD, f"thinking {_SIGNS}", (Shell(_ODD_OUTPUT),)),
            Turn("Now the file.", acts=(Write("hello-日本.txt", f"{_SIGNS}\r\n"),)),
            Turn(f"{_ODD}\n{_long_line(200_000)}\n\n{MARKER}\n"),
        ),
    ),
    "bigtool": Scenario(
        "a command that prints 400 KB, then as success",
        _first(Shell("head -c 300000 /dev/zero | tr '\\0' x; echo; seq 1 20000")),
    ),
    "long": Scenario(
        "twelve commands one after another, then it finishes",
        (*(Turn(f"Step {n}.", acts=(Shell(f"echo step {n}"),)) for n in range(1, 13)), _FINISH),
    ),
    "parallel": Scenario(
        "two commands in one turn, the second fails, then as success",
        _first(Shell("echo one"), Shell("echo two; exit 1")),
    ),
    "empty": Scenario("an answer with nothing in it", (Turn(),)),
    "answer": Scenario(
        "finishes at once, also when no tools are offered",
        (Turn(f"There is nothing to do.\n\n{MARKER}\n"),),
        None,
        0,
        True,
    ),
}
