"""Values of Flow as JSON: durations, times, decimals, bytes; and JSON as bytes that the runtime takes.

Leaves types to ``schemas``. What is written here is what the runtime writes, so a value that went there and back is the same text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import math
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

__all__ = ["dump", "duration_text", "parse_bytes", "parse_decimal", "parse_duration", "parse_time", "time_text"]

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_MS_OF = dict(_UNITS)
_PART = re.compile(r"([0-9]+)(ms|[dhms])")
_DURATION_MS_MAX = 100 * 365 * 86_400_000
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)

# Half of a surrogate pair is no text: it becomes U+FFFD here, as the runtime does with it at every border.
codecs.register_error("outlast.replace", lambda e: (b"\xef\xbf\xbd" * (e.end - e.start), e.end))  # type: ignore[attr-defined]


def duration_text(duration: timedelta) -> str:
    """Writes a duration as Flow does: ``1h30m``, ``250ms``; what is below a millisecond is cut off."""
    rest = duration // timedelta(milliseconds=1)
    if rest < 0:
        raise ValueError(f"a duration is not negative: {duration}")
    text = ""
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def parse_duration(text: str) -> timedelta:
    """Reads a duration of Flow."""
    total, at, last = 0, 0, math.inf
    while part := _PART.match(text, at):
        size = _MS_OF[part[2]]
        if size >= last:
            break
        total, at, last = total + int(part[1]) * size, part.end(), size
    if at == 0 or at != len(text) or total > _DURATION_MS_MAX:
        raise ValueError(f"a duration such as '1h30m' is expected, not {text[:40]!r}")
    return timedelta(milliseconds=total)


def time_text(time: datetime) -> str:
    """Writes a time as the runtime does: RFC 3339, UTC, milliseconds."""
    if time.utcoffset() is None:
        raise ValueError(f"a time needs a time zone, as in datetime.now(timezone.utc): {time}")
    utc = time.astimezone(timezone.utc)
    return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03}Z"


def parse_time(text: str) -> datetime:
    """Reads an RFC 3339 time."""
    found = _TIME.fullmatch(text)
    if not found:
        raise ValueError(f"an RFC 3339 time such as '2027-03-14T02:30:00Z' is expected, not {text[:40]!r}")
    year, month, day, hour, minute, second, fraction, sign, of_hour, of_minute = found.groups()
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    offset = timedelta(hours=int(of_hour or 0), minutes=int(of_minute or 0))
    at = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro, timezone.utc)
    return at + offset if sign == "-" else at - offset


def parse_decimal(text: str) -> Decimal:
    """Reads a decimal of Flow: digits, without an exponent."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"a decimal such as '0.40' is expected, not {text[:40]!r}")
    return Decimal(text)


def parse_bytes(text: str) -> bytes:
    """Reads base64 with padding."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"base64 text is expected: {error}") from None


def dump(value: Any) -> bytes:
    """Writes JSON; raises ``ValueError`` or ``TypeError`` for what JSON has no form for, such as NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "outlast.replace")
