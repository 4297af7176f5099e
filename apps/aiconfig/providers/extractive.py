"""The chat provider `none`: an answer of the passages' own sentences, each with its `[n]`.

1. Cut the passages into units (sentences, list items, table rows, code blocks).
2. Score a unit by the question's significant terms that it covers, weighted by their rarity among the units (IDF);
   identifiers and acronyms count threefold (not one that stands everywhere, as a product's name does), words of its
   headings half. Sentences that define or state a value gain a little, those in another language than the
   question's lose some, and one that only repeats the question is left out.
3. Take the best units as long as they are near the best one and not a repeat.
4. Show them by passage, the best passage first, in the order in which they stand there.

If no unit covers enough of the question, the answer says so, in the question's language.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apps.aiconfig.providers.extractive_units import Unit, cut_into_units
from apps.aiconfig.providers.types import ChatDelta, ChatRequest, PromptPassage, StreamEnd, TextDelta
from docmind.executor import run_blocking
from docmind.text import detect_language, find_identifiers, segment, significant_terms

LONGEST_ANSWER_UNITS: Final = 5
ENOUGH_COVERAGE: Final = 0.3
"""Share of the question's weight that the best unit must cover."""
NEAR_THE_BEST: Final = 0.6
SAME_TERMS: Final = 0.8
"""Jaccard likeness from which a unit repeats another."""
IDENTIFIER_WEIGHT: Final = 3.0
CONTEXT_WEIGHT: Final = 0.5
ANSWER_BONUS: Final = 0.15
PASSAGE_RANK_BONUS: Final = 0.08
OTHER_LANGUAGE: Final = 0.7
FEW_UNITS: Final = 4
EVERYWHERE_SHARE: Final = 0.2
"""An identifier in more than so many units, and in more than this share of them, tells nothing."""
USUAL_UNIT_CHARS: Final = 200
PIECE_CHARS: Final = 12
SHORTEST_ECHO_CHARS: Final = 8
_WORD: Final = re.compile(r"\w+")
_ACRONYM: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2,}(?![A-Za-z0-9])")
_WORD_OR_QUESTION_MARK: Final = re.compile(r"[\w?？]+")

_NOTHING: Final = {
    "zh": "没有找到能直接回答这个问题的句子。可以换个说法再问，或查看下面的来源。",
    "en": "No sentence of the documents answers this question directly. Try other words, or look at the sources below.",
}
_NO_PASSAGES: Final = {
    "zh": "知识库里没有找到与这个问题有关的内容。",
    "en": "Nothing about this question was found in the knowledge base.",
}

# What a question asks for, and how a sentence that answers it tends to look.
_ANSWER_FORMS: Final = (
    (
        re.compile(r"是什么|什么是|何为|含义|定义|意思|\bwhat (?:is|are|does)\b|\bmeaning\b|\bdefine", re.IGNORECASE),
        re.compile(r"是(?!否)|指的?是|表示|称为|用于|\b(?:is|are|means|refers to|stands for)\b", re.IGNORECASE),
    ),
    (
        re.compile(
            r"多少|几个|多大|多长|多久|默认|端口|上限|最大|\bhow (?:many|much|long|large|big)\b|\bdefault\b",
            re.IGNORECASE,
        ),
        re.compile(r"\d"),
    ),
    (
        re.compile(r"怎么|怎样|如何|步骤|\bhow (?:do|to|can|should)\b", re.IGNORECASE),
        re.compile(r"```|`|设置|执行|运行|使用|修改|\b(?:run|set|use|add|open|edit|call|install)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"为什么|为何|原因|\bwhy\b|\bcause", re.IGNORECASE),
        re.compile(r"因为|由于|导致|因此|所以|\bbecause\b|\bdue to\b|\bcause", re.IGNORECASE),
    ),
)


class ExtractiveChat:
    """Needs no model; never fails."""

    name = "none"
    is_generative = False

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        answer = await run_blocking(extract_answer, request.question, request.passages)
        for start in range(0, len(answer), PIECE_CHARS):
            yield TextDelta(text=answer[start : start + PIECE_CHARS])
            await asyncio.sleep(0)
        yield StreamEnd()


def extract_answer(question: str, passages: Sequence[PromptPassage]) -> str:
    """The answer as Markdown, citations included. Same input, same answer."""
    language = "zh" if detect_language(question) == "zh" else "en"
    if not passages:
        return _NO_PASSAGES[language]
    chosen = _choose(_score(question, passages))
    if not chosen:
        return _NOTHING[language]
    return _compose(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    unit: Unit
    terms: frozenset[str]
    coverage: float
    """Share of the question's weight, 0 to 1, context counted half."""
    score: float


def _score(question: str, passages: Sequence[PromptPassage]) -> list[_Scored]:
    units = [
        unit
        for passage in passages
        for unit in cut_into_units(passage.index, passage.text, heading_path=passage.heading_path)
        if not _echoes(question, unit.text)
    ]
    language = detect_language(question)
    own = [frozenset(segment(unit.text)) for unit in units]
    around = [frozenset(segment(unit.context)) for unit in units]
    weights = _weights(question, own)
    total = sum(weights.values())
    if not total:
        return []
    bonus_forms = [form for asks, form in _ANSWER_FORMS if asks.search(question)]
    rank = {passage.index: number for number, passage in enumerate(passages)}
    scored = []
    for unit, terms, context in zip(units, own, around, strict=True):
        covered = sum(weight for term, weight in weights.items() if term in terms)
        near = sum(weight for term, weight in weights.items() if term in context and term not in terms)
        coverage = (covered + CONTEXT_WEIGHT * near) / total
        bonus = ANSWER_BONUS if any(form.search(unit.text) for form in bonus_forms) else 0.0
        score = coverage * (1 + bonus + PASSAGE_RANK_BONUS / (1 + rank[unit.passage])) / _length_penalty(unit)
        if {language, detect_language(unit.text)} == {"zh", "en"}:
            score *= OTHER_LANGUAGE
        scored.append(_Scored(unit=unit, terms=terms, coverage=coverage, score=score))
    return scored


def _echoes(question: str, text: str) -> bool:
    """Whether the text quotes the question as a question, as a manual's example does."""
    asked = "".join(_WORD.findall(question)).casefold()
    quoted = "".join(_WORD_OR_QUESTION_MARK.findall(text)).casefold().replace("？", "?")
    return len(asked) >= SHORTEST_ECHO_CHARS and f"{asked}?" in quoted


def _length_penalty(unit: Unit) -> float:
    """Long units hold many words by chance."""
    return 1 + 0.2 * max(0.0, math.log(len(unit.text) / USUAL_UNIT_CHARS))


def _weights(question: str, units: Sequence[frozenset[str]]) -> dict[str, float]:
    """The question's terms with their weight: rarity among the units, threefold for telling identifiers.

    The parts of an identifier count only where no unit holds the whole.
    """
    frequency: Mapping[str, int] = Counter(term for terms in units for term in terms)
    everywhere = max(FEW_UNITS, len(units) * EVERYWHERE_SHARE)
    written = (*find_identifiers(question), *_ACRONYM.findall(question))
    identifiers = {identifier.casefold() for identifier in written}
    found = [identifier for identifier in written if frequency.get(identifier.casefold())]
    implied = {part for identifier in found for part in segment(identifier)} - identifiers
    weights: dict[str, float] = {}
    for term in significant_terms(question):
        if term in implied:
            continue
        holders = max(1, frequency.get(term, 0))
        rarity = math.log(1 + (len(units) - holders + 0.5) / (holders + 0.5)) if holders <= len(units) else 1.0
        is_telling = term in identifiers and holders <= everywhere
        weights[term] = rarity * (IDENTIFIER_WEIGHT if is_telling else 1.0)
    return weights


def _choose(scored: list[_Scored]) -> list[_Scored]:
    """The best units, best first; none if the best one covers too little."""
    ranked = sorted(
        (one for one in scored if one.coverage >= ENOUGH_COVERAGE and one.terms),
        key=lambda one: (-one.score, one.unit.passage, one.unit.order),
    )
    chosen: list[_Scored] = []
    for one in ranked:
        if len(chosen) == LONGEST_ANSWER_UNITS or one.score < NEAR_THE_BEST * ranked[0].score:
            break
        if all(_likeness(one.terms, other.terms) < SAME_TERMS for other in chosen):
            chosen.append(one)
    return chosen


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)


def _compose(chosen: list[_Scored]) -> str:
    order: list[int] = list(dict.fromkeys(one.unit.passage for one in chosen))
    blocks: list[str] = []
    for passage in order:
        units = sorted((one.unit for one in chosen if one.unit.passage == passage), key=lambda unit: unit.order)
        previous: Unit | None = None
        for unit in units:
            _append(blocks, unit, previous)
            previous = unit
    return "\n\n".join(blocks)


def _append(blocks: list[str], unit: Unit, previous: Unit | None) -> None:
    """Add one unit's Markdown; sentences, items and rows of one place go on in the block before."""
    goes_on = previous is not None and previous.kind == unit.kind
    if unit.lead and (previous is None or previous.lead != unit.lead):
        blocks.append(_cited(unit.lead, unit.passage))
        goes_on = False
    match unit.kind:
        case "row":
            row = f"{_cited(unit.text.rstrip('| '), unit.passage)} |"
            head = unit.table_head or _headless(unit.text)
            if goes_on and previous is not None and previous.table_head == unit.table_head:
                blocks[-1] += "\n" + row
            else:
                blocks.append("\n".join([*head, row]))
        case "code":
            blocks.append(unit.text if unit.lead else f"{unit.text}\n\n[{unit.passage}]")
        case "item":
            item = f"- {_cited(unit.text, unit.passage)}"
            if goes_on:
                blocks[-1] += "\n" + item
            else:
                blocks.append(item)
        case "sentence":
            sentence = _cited(unit.text, unit.passage)
            if goes_on:
                blocks[-1] += (" " if sentence[:1].isascii() else "") + sentence
            else:
                blocks.append(sentence)


def _cited(text: str, passage: int) -> str:
    """`text` with its citation mark; a full-width full stop needs no space behind it."""
    return f"{text}{' ' if text[-1:].isascii() else ''}[{passage}]"


def _headless(row: str) -> tuple[str, str]:
    """A heading for a row whose table begins in another passage."""
    columns = max(1, row.strip().strip("|").count("|") + 1)
    return "|" + "   |" * columns, "|" + " --- |" * columns
