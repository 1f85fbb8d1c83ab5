"""Replaces the ids in a recorded line, as if it came from another call or message."""

from __future__ import annotations

import re
from enum import StrEnum


class New(StrEnum):
    #: everything that looks like an id
    IDS = "ids"
    #: names and numbers, too
    ALL = "all"


#: A value with a digit and without a space, or any value whose key names an id.
_ID = re.compile(r'(?<=")(?=[^"\\]*\d)[\w.:|/-]{4,80}(?="(?!\s*:))|(?<=[iI]d":")[^"\\]+(?=")')
_NAME = re.compile(r'(?<=name":")[^"\\]+(?=")|(?<=Name":")[^"\\]+(?=")')
_NUMBER = re.compile(r"(?<=:)\d+(?=[,}])|(?<=[ \[(])\d+(?=[ \]),.:]|$)")


def with_new_ids(line: str, number: int, what: New = New.IDS) -> str:
    """For the same number, equal ids stay equal, so that lines that belong together still do."""
    line = _ID.sub(lambda found: f"{found.group()}-{number}", line)
    if what is New.ALL:
        line = _NAME.sub(lambda found: f"{found.group()}-{number}", line)
        line = _NUMBER.sub(lambda found: str(int(found.group()[-12:]) + number), line)
    return line
