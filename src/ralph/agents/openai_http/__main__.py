"""`python -m ralph.agents.openai_http --model NAME` reads the prompt from stdin and prints RTF1."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from ralph.agents.openai_http import endpoint as endpoints
from ralph.agents.openai_http.answer import Answer
from ralph.agents.openai_http.connection import ConnectionFailedError, Exchange
from ralph.agents.openai_http.errors import Failure, refused
from ralph.agents.openai_http.request import Form, body, simpler
from ralph.agents.openai_http.sse import AnswerReader
from ralph.transcripts import meta
from ralph.transcripts.events import Meta, encode
from ralph.transcripts.rtf1 import SENTINEL

if TYPE_CHECKING:
    from ralph.agents.openai_http.endpoint import Endpoint
    from ralph.transcripts.events import TranscriptEvent

_USAGE_ERROR = 64
#: A long line is printed when it is complete. Until then, report progress so that the idle timeout does not fire.
_PROGRESS_INTERVAL = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ralph.agents.openai_http", description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", required=True, help="the model's name at the endpoint")
    model = parser.parse_args().model
    try:
        endpoint = endpoints.from_environment(os.environ)
    except endpoints.SetupError as error:
        _emit(Failure(str(error)).events())
        return _USAGE_ERROR
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        failure = _ask(endpoint, model, prompt)
    except ConnectionFailedError as error:
        failure = Failure(str(error))
    if failure is None:
        return 0
    _emit(failure.without(endpoint.key).events())
    return 1


def _ask(endpoint: Endpoint, model: str, prompt: str) -> Failure | None:
    form = Form.STREAM_WITH_USAGE
    while True:
        with closing(Exchange(endpoint)) as exchange:
            status, headers = exchange.ask(body(model, prompt, form))
            if status < 300:
                return _receive(exchange)
            answer = exchange.error_body()
        failure = refused(status, headers, answer, endpoint.shown, with_key=endpoint.key is not None)
        next_form = simpler(form, status, answer)
        if next_form is None:
            return failure
        form = next_form
        message = failure.without(endpoint.key).message
        _emit([meta.retry(f"{message}; asking for the answer {form.value}")])


def _receive(exchange: Exchange) -> Failure | None:
    reader, answer, broken = AnswerReader(), Answer(), None
    printed, known = time.monotonic(), 0
    try:
        for chunk in exchange.chunks():
            events = [event for item in reader.feed(chunk) for event in answer.feed(item)]
            if not events and answer.characters > known and time.monotonic() > printed + _PROGRESS_INTERVAL:
                events = [Meta({"kind": "progress", "characters": answer.characters})]
            if events:
                _emit(events)
                printed, known = time.monotonic(), answer.characters
            if reader.done or answer.failure:
                break
            if answer.finish:
                exchange.expect_end()  # only the usage may follow
    except ConnectionFailedError as error:
        broken = str(error)
    events = [event for item in reader.flush() for event in answer.feed(item)]
    _emit(events + answer.end(broken, done=reader.done))
    return answer.failure


def _emit(events: list[TranscriptEvent]) -> None:
    lines = b"".join(SENTINEL.encode() + encode(event) + b"\n" for event in events)
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
