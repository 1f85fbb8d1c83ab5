"""`python -m ralph.agents.openai_http --model NAME`: the prompt on stdin, RTF1 on stdout."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from ralph.agents.openai_http import endpoint as endpoints
from ralph.agents.openai_http.answer import Answer
from ralph.agents.openai_http.connection import ConnectionFailedError, Exchange
from ralph.agents.openai_http.errors import Failure, refused
from ralph.agents.openai_http.request import Form, body, weaker
from ralph.agents.openai_http.sse import AnswerReader
from ralph.transcripts import meta
from ralph.transcripts.events import Meta, encode
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ralph.agents.openai_http.endpoint import Endpoint
    from ralph.transcripts.events import TranscriptEvent

_USAGE_ERROR = 64
#: A long line is printed when it is whole; a sign of life in between keeps the idle deadline away.
_SIGN_OF_LIFE = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ralph.agents.openai_http", description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", required=True, help="as the endpoint calls it")
    model = parser.parse_args().model
    try:
        endpoint = endpoints.from_environment(os.environ)
    except endpoints.SetupError as error:
        _emit(Failure(str(error)).events())
        return _USAGE_ERROR
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        failure = _converse(endpoint, model, prompt, os.environ)
    except ConnectionFailedError as error:
        failure = Failure(str(error)).without(endpoint.key)
        _emit(failure.events())
    return 0 if failure is None else 1


def _converse(endpoint: Endpoint, model: str, prompt: str, environ: Mapping[str, str]) -> Failure | None:
    form = Form.STREAM_WITH_USAGE
    while True:
        with Exchange(endpoint, environ) as exchange:
            status, headers = exchange.ask(body(model, prompt, form))
            if status < 300:
                return _listen(exchange, endpoint.key)
            answer = exchange.error_body()
        failure = refused(status, headers, answer, endpoint.shown, with_key=endpoint.key is not None)
        failure = failure.without(endpoint.key)
        less = weaker(form, status, answer)
        if less is None:
            _emit(failure.events())
            return failure
        _emit([meta.retry(f"{failure.message}; asking for the answer {less.value}")])
        form = less


def _listen(exchange: Exchange, key: str | None) -> Failure | None:
    reader, answer, broken = AnswerReader(), Answer(), None
    printed, known = time.monotonic(), 0
    try:
        for chunk in exchange.chunks():
            events = [event for item in reader.feed(chunk) for event in answer.feed(item)]
            if not events and answer.characters > known and time.monotonic() > printed + _SIGN_OF_LIFE:
                events = [Meta({"kind": "progress", "characters": answer.characters})]
            if events:
                _emit(events)
                printed, known = time.monotonic(), answer.characters
            if answer.done or answer.failure:
                break
            if answer.finish:
                exchange.hurry()  # its last word has come; its usage may follow
    except ConnectionFailedError as error:
        broken = str(error)
    _emit([event for item in reader.flush() for event in answer.feed(item)])
    _emit(answer.end(broken, key))
    return answer.failure


def _emit(events: list[TranscriptEvent]) -> None:
    lines = b"".join(SENTINEL.encode() + encode(event) + b"\n" for event in events)
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
