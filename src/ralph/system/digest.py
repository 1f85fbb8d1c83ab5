"""SHA-256."""

from __future__ import annotations

__all__ = ["digest", "sha256"]

try:  # as `random` does: hashlib would load all of OpenSSL, which takes a twentieth of a start
    from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore] # its name in Python 3.11
    except ImportError:
        from hashlib import sha256


def digest(data: bytes) -> str:
    text: str = sha256(data).hexdigest()
    return text
