"""A recorded line as it would be in another call or message: whatever in it may be an id is another one."""

from __future__ import annotations

import re
from enum import StrEnum


class New(StrEnum):
    #: what looks like an id
    IDS = "ids"
    #: also names and numbers
    ALL = "all"


#: A value with a digit in it and without a space, or any value whose key says that it is an id.
_ID = re.compile(r'(?<=")(?=[^"\\]*\d)[\w.:|/-]{4,80}(?="(?!\s*:))|(?<=[iI]d":")[^"\\]+(?=")')
_NAME = re.compile(r'(?<=name":")[^"\\]+(?=")|(?<=Name":")[^"\\]+(?=")')
_NUMBER = re.compile(r"(?<=:)\d+(?=[,}])|(?<=[ \[(])\d+(?=[ \]),.:]|$)")


def renewed(line: str, number: int, what: New = New.IDS) -> str:
    """Equal ids become equal ones for the same number, so that what belongs together still does."""
    line = _ID.sub(lambda found: f"{found.group()}-{number}", line)
    if what is New.ALL:
        line = _NAME.sub(lambda found: f"{found.group()}-{number}", line)
        line = _NUMBER.sub(lambda found: str(int(found.group()[-12:]) + number), line)
    return line
