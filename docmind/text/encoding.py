"""Encodes search terms so that every full-text engine indexes them under its default settings.

MySQL and MariaDB ignore tokens under three characters, drop stop words and silently skip tokens over 84 characters;
FTS5 splits at underscores and other punctuation. An encoded term is a constant prefix, one letter that tells the form,
and a body over [a-z0-9]; the digit in the prefix keeps it apart from every stop word:

- `z7a` + the term: terms of up to 57 characters over [a-z0-9];
- `z7b` + lower-case base32 of the UTF-8 bytes: other terms of up to 35 bytes;
- `z7h` + base32 of a 160-bit digest: longer terms.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

PREFIX = "z7"
MAX_ENCODED_CHARS = 60

_PLAIN = re.compile(rf"[a-z0-9]{{1,{MAX_ENCODED_CHARS - len(PREFIX) - 1}}}")
_MAX_BASE32_BYTES = 35
_DIGEST_BYTES = 20


def encode_term(term: str) -> str:
    """`term` as one token of 4 to 60 characters over [a-z0-9].

    Injective for terms that fit; longer ones are told apart by their digest. Raises ValueError for an empty term.
    """
    if not term:
        raise ValueError("An empty term cannot be encoded.")
    if _PLAIN.fullmatch(term):
        return f"{PREFIX}a{term}"
    octets = term.encode("utf-8", "surrogatepass")
    if len(octets) <= _MAX_BASE32_BYTES:
        return f"{PREFIX}b{_base32(octets)}"
    return f"{PREFIX}h{_base32(hashlib.blake2b(octets, digest_size=_DIGEST_BYTES).digest())}"


def encode_terms(terms: Iterable[str]) -> str:
    """The encoded terms joined by single spaces: the content of `search_text`, or the words of a query."""
    return " ".join(map(encode_term, terms))


def _base32(octets: bytes) -> str:
    return base64.b32encode(octets).decode("ascii").rstrip("=").lower()
