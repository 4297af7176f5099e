"""The catalogues are whole: every text has its Chinese, placeholders agree, and what is compiled is what is written."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path

import pytest
from django.conf import settings

LOCALE = Path(settings.BASE_DIR) / "locale"
PLACEHOLDER = re.compile(r"%\(\w+\)[sdg]|%d|%s")
ENTRY = re.compile(r'^(msgid|msgid_plural|msgstr(?:\[\d\])?) ((?:"(?:[^"\\]|\\.)*"\n?)+)', re.MULTILINE)


def entries(path: Path) -> list[dict[str, str]]:
    """Each entry's fields, the header and obsolete ones left out."""
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n")[1:]:
        fields = {
            name: "".join(ast.literal_eval(line) for line in text.splitlines()) for name, text in ENTRY.findall(block)
        }
        if fields:
            found.append(fields)
    return found


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_every_text_has_its_chinese(domain: str) -> None:
    written = entries(LOCALE / "zh_Hans" / "LC_MESSAGES" / f"{domain}.po")
    assert len(written) > 50
    untranslated = [entry["msgid"] for entry in written if not entry.get("msgstr", entry.get("msgstr[0]"))]
    assert untranslated == []


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_placeholders_agree(domain: str) -> None:
    for entry in entries(LOCALE / "zh_Hans" / "LC_MESSAGES" / f"{domain}.po"):
        chinese = entry.get("msgstr") or entry["msgstr[0]"]
        assert sorted(PLACEHOLDER.findall(chinese)) == sorted(PLACEHOLDER.findall(entry["msgid"])), entry["msgid"]


@pytest.mark.parametrize("domain", ["django", "djangojs"])
def test_the_compiled_catalogue_is_the_written_one(domain: str) -> None:
    folder = LOCALE / "zh_Hans" / "LC_MESSAGES"
    with (folder / f"{domain}.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for entry in entries(folder / f"{domain}.po"):
        if plural := entry.get("msgid_plural"):
            assert compiled.ngettext(entry["msgid"], plural, 2) == entry["msgstr[0]"]
        else:
            assert compiled.gettext(entry["msgid"]) == entry["msgstr"]


def test_english_has_the_same_texts() -> None:
    for domain in ("django", "djangojs"):
        chinese, english = (
            {entry["msgid"] for entry in entries(LOCALE / language / "LC_MESSAGES" / f"{domain}.po")}
            for language in ("zh_Hans", "en")
        )
        assert chinese == english
