"""Bytes to text: UTF-8, UTF-16 and GB18030, told by content; what is not text is refused."""

from __future__ import annotations

import codecs
import re

from django.utils.translation import gettext as _

from docmind.errors import PermanentError

_SIGNATURES = (
    b"%PDF-",
    b"%!PS",
    b"{\\rtf",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM\x00",
    b"II*\x00",
    b"MM\x00*",
    b"RIFF",
    b"OggS",
    b"ID3",
    b"fLaC",
    b"\x7fELF",
    b"MZ",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"(\xb5/\xfd",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"SQLite format 3\x00",
    b"\x00asm",
)
_SHORT_SIGNATURES = (b"MZ", b"ID3", b"BZh", b"RIFF")
"""Printable enough to begin a text: they count only with a control character near them."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffe\uffff]")
_CONTROL_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_LINE_ENDS = re.compile(r"\r\n?")
_MAX_CONTROL_SHARE = 0.001
_SAMPLE_BYTES = 4096
_NEAR_BYTES = 256


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file can be the beginning of a text; a character cut at the end does no harm."""
    try:
        decode_text(head, whole=False)
    except PermanentError:
        return False
    return True


def decode_text(content: bytes, *, whole: bool = True) -> str:
    """The text with `\\n` line ends and without NUL characters and byte-order marks.

    `whole` is False for the beginning of a file. Raises PermanentError `unsupported_file` for what is no text.
    """
    if _has_signature(content):
        raise _not_text()
    for encoding in _candidates(content):
        try:
            text = codecs.getincrementaldecoder(encoding)("strict").decode(content, final=whole)
        except UnicodeDecodeError:
            continue
        controls = len(_CONTROL.findall(text))
        if "\x00" in text or controls > max(1, len(text) * _MAX_CONTROL_SHARE):
            continue
        return _LINE_ENDS.sub("\n", text)
    raise _not_text()


def _candidates(content: bytes) -> tuple[str, ...]:
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return ("utf-32",)
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return (encoding,)
    sample = content[:_SAMPLE_BYTES]
    if b"\x00" in sample:
        # ASCII or Chinese with ASCII line ends: in UTF-16 the zeros stand at one parity of places.
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        return ("utf-16-le",) if odd > 4 * even else ("utf-16-be",) if even > 4 * odd else ()
    return ("utf-8", "gb18030")


def _has_signature(content: bytes) -> bool:
    found = next((mark for mark in _SIGNATURES if content.startswith(mark)), None)
    if found is None:
        return content[4:8] == b"ftyp"
    return found not in _SHORT_SIGNATURES or bool(_CONTROL_BYTES.search(content[:_NEAR_BYTES]))


def _not_text() -> PermanentError:
    return PermanentError(
        _("The file's content is not text in UTF-8, UTF-16 or GB18030, and no other format that can be read."),
        code="unsupported_file",
    )
