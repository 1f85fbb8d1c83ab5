"""Invented keys of every kind, assembled at run time so that no scanner takes this file for a leak."""

from __future__ import annotations

_MIX = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6"

KEYS = {
    "anthropic": "sk-" + "ant-api03-" + _MIX + "-" + _MIX[:30] + "_AA",
    "openai": "sk-" + _MIX[:48],
    "openai project": "sk-" + "proj-" + _MIX[:40] + "_" + _MIX[:12] + "-x",
    "openrouter": "sk-" + "or-v1-" + "0123456789abcdef" * 4,
    "github": "ghp" + "_" + _MIX[:36],
    "github oauth": "gho" + "_" + _MIX[:36],
    "github fine": "github" + "_pat_" + _MIX[:22] + "_" + _MIX + "abcdefg",
    "gitlab": "glpat" + "-" + _MIX[:20],
    "aws": "AKIA" + "Q3EGRIXOZ7M5N2PA",
    "slack": "xoxb" + "-" + "123456789012-1234567890123-" + _MIX[:24],
    "google": "AIza" + "Sy" + _MIX[:33],
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + "." + _MIX[:43],
}

_BODY = "\n".join([_MIX[:52] + "+/ab" + "ABCDefgh"] * 12) + "\nQ0RF=="
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + _BODY + "\n-----END " + "RSA PRIVATE KEY-----"
PEM_BODY = _BODY

#: Texts that are not secrets, although they look similar.
ORDINARY = [
    "task-list of the risk-averse desk-bound",
    "sk-circle sk-fading-circle-container-of-the-page",
    "class sk-loading-spinner-element-in-the-middle",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Authorization: Bearer $ANTHROPIC_API_KEY",
    "Authorization: Bearer YOUR_API_KEY_GOES_RIGHT_HERE",
    "Bearer tokens are described in RFC 6750",
    "the AKIA prefix, AIza and ghp_ and glpat- and xoxb- and eyJ",
    "def ghp_something_long_enough_to_look_like_a_key_at_all(self):",
    "MAKIAVELLI1234567890ABCD",
    "eyJhbGciOiJIUzI1NiJ9 is only the head",
    "import os, sys; print(os.environ.get('OPENAI_API_KEY'))",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "https://example.com/a/very/long/path/that-goes-on?and=on&on=1234567890",
]
