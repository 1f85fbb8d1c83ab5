"""A stand-in for jq that knows the filters of the sample scripts and no others.

With it the samples also run on a machine without jq. `put_jq` makes it the `jq` of a folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Arguments = dict[str, str]


def _delta(arguments: Arguments, _: Any) -> Iterator[Any]:
    yield {"type": "content_block_delta", "delta": {"type": "text_delta", "text": arguments["text"] + "\n"}}


def _request(arguments: Arguments, _: Any) -> Iterator[Any]:
    yield {"model": arguments["model"], "messages": [{"role": "user", "content": arguments["prompt"]}]}


def _answer(_: Arguments, value: Any) -> Iterator[Any]:
    content = ((value.get("choices") or [{}])[0].get("message") or {}).get("content")
    if content is not None:
        yield content


def _blocks(value: Any) -> list[dict[str, Any]]:
    return list(value["message"]["content"]) if value.get("type") == "assistant" else []


def _said(_: Arguments, value: Any) -> Iterator[Any]:
    yield from (block["text"] for block in _blocks(value) if block["type"] == "text")


def _displayed(_: Arguments, value: Any) -> Iterator[Any]:
    for block in _blocks(value):
        match block["type"]:
            case "thinking":
                yield "[thinking] " + block["thinking"]
            case "text":
                yield block["text"]
            case "tool_use":
                keys = ("path", "cmd", "filePattern", "pattern", "query", "url", "description", "prompt")
                shown = next((block["input"][key] for key in keys if block["input"].get(key)), block["input"])
                yield f"[tool] {block['name']}: {(shown if isinstance(shown, str) else _compact(shown))[:200]}"


#: By the text of the filter, without its white space.
FILTERS: dict[str, Callable[[Arguments, Any], Iterator[Any]]] = {
    '{type:"content_block_delta",delta:{type:"text_delta",text:($text+"\\n")}}': _delta,
    '{model:$model,messages:[{role:"user",content:$prompt}]}': _request,
    ".choices[0].message.content//empty": _answer,
    'select(.type=="assistant")|.message.content[]|select(.type=="text")|.text': _said,
    'select(.type=="assistant")|.message.content[]|if.type=="thinking"then"[thinking]"+.thinkingelif.type=="text"'
    'then.textelif.type=="tool_use"then"[tool]"+.name+":"+((.input|(.path//.cmd//.filePattern//.pattern//.query//.url//'
    ".description//.prompt//(tostring))|tostring|.[0:200]))elseemptyend": _displayed,
}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def put_jq(folder: Path) -> None:
    """Writes a `jq` into a folder of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "jq"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{Path(__file__).resolve()}" "$@"\n')
    program.chmod(0o755)


def main(arguments: list[str]) -> int:
    options = ""
    named: Arguments = {}
    program = ""
    while arguments:
        match arguments:
            case ["--arg", name, value, *rest]:
                named[name] = value
            case [first, *rest] if first.startswith("-"):
                options += first[1:]
            case [program, *rest]:
                pass
        arguments = rest
    chosen = FILTERS.get("".join(program.split()))
    if chosen is None:
        sys.stderr.write(f"the stand-in for jq does not know this filter: {program}\n")
        return 3
    try:
        value = None if "n" in options else json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        sys.stderr.write(f"jq: parse error: {error}\n")
        return 2
    for result in chosen(named, value):
        print(result if "r" in options and isinstance(result, str) else _compact(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
