"""Compression: what fits into the prompt says as much as possible.

1. Repeats go: the same chunk or text, and near duplicates (one text holds the other, or the Jaccard index of their
   character bigrams reaches the threshold). The better place stays, with the longer text where one holds the other.
2. A long passage is cut to a window around the hit: its child, else the first query term in it, else its head; the
   window's edges move inwards to the end of a sentence where one is near.
3. Passages are taken in order while the token budget lasts; one that does not fit is skipped, a later one may.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.types import RetrievedChunk
from docmind.text import estimate_tokens, find_identifiers, significant_terms, split_sentences

SNAP_CHARS = 80
_SPACE = re.compile(r"\s+")


def compress(
    chunks: Sequence[RetrievedChunk], query: str, *, config: ConfigSnapshot, fit_prompt: bool = True
) -> tuple[RetrievedChunk, ...]:
    """The chunks, best first, without repeats, each at most `compress.max_chunk_chars` long.

    With `fit_prompt` also at most `rag.context_max_tokens` together; if not even the first fits, it is shortened.
    """
    distinct = drop_repeats(chunks, near_duplicate_jaccard=config.compress_near_dup_jaccard)
    needles = (*find_identifiers(query), *sorted(significant_terms(query), key=len, reverse=True))
    cut = tuple(cut_window(chunk, needles, max_chars=config.compress_max_chunk_chars) for chunk in distinct)
    return fit_budget(cut, needles, max_tokens=config.rag_context_max_tokens) if fit_prompt else cut


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shingled:
    chunk: RetrievedChunk
    text: str
    bigrams: frozenset[str]


def drop_repeats(chunks: Sequence[RetrievedChunk], *, near_duplicate_jaccard: float) -> tuple[RetrievedChunk, ...]:
    """The chunks without those that only say again what a better one says."""
    kept: list[_Shingled] = []
    keys: set[str] = set()
    for chunk in chunks:
        if chunk.dedupe_key in keys:
            continue
        keys.add(chunk.dedupe_key)
        new = _shingle(chunk)
        for place, old in enumerate(kept):
            if new.text in old.text or _jaccard(old.bigrams, new.bigrams) >= near_duplicate_jaccard:
                break
            if old.text in new.text:
                kept[place] = replace(new, chunk=replace(chunk, rerank_score=old.chunk.rerank_score))
                break
        else:
            kept.append(new)
    return tuple(entry.chunk for entry in kept)


def _shingle(chunk: RetrievedChunk) -> _Shingled:
    text = _SPACE.sub("", unicodedata.normalize("NFKC", chunk.content).casefold())
    bigrams = frozenset(text[index : index + 2] for index in range(max(1, len(text) - 1)))
    return _Shingled(chunk=chunk, text=text, bigrams=bigrams)


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    smaller, larger = sorted((len(first), len(second)))
    if smaller == 0:
        return 0.0
    shared = len(first & second)
    return shared / (smaller + larger - shared)


def cut_window(chunk: RetrievedChunk, needles: Sequence[str], *, max_chars: int) -> RetrievedChunk:
    """The chunk with at most `max_chars` of its content, around the hit; its offsets move with the text."""
    if len(chunk.content) <= max_chars:
        return chunk
    hit_start, hit_end = _hit(chunk, needles, max_chars)
    start = max(0, min((hit_start + hit_end - max_chars) // 2, len(chunk.content) - max_chars))
    end = start + max_chars
    start, end = _snap(chunk.content, start, end, hit_start, hit_end)
    content = chunk.content[start:end]
    if len(chunk.content) != chunk.end_char - chunk.start_char:
        return replace(chunk, content=content)
    return replace(chunk, content=content, start_char=chunk.start_char + start, end_char=chunk.start_char + end)


def _hit(chunk: RetrievedChunk, needles: Sequence[str], max_chars: int) -> tuple[int, int]:
    """Where in the content the reader should look: the child, or if that is too long, a query term in it."""
    start, end = 0, len(chunk.content)
    place = chunk.child_start - chunk.start_char
    if not chunk.content.startswith(chunk.child_content, max(0, place)):
        place = chunk.content.find(chunk.child_content)
    if place >= 0 and chunk.child_content:
        start, end = place, place + len(chunk.child_content)
    if end - start <= max_chars:
        return start, end
    passage = chunk.content[start:end].lower()
    for needle in needles:
        found = passage.find(needle.lower())
        if found >= 0:
            return start + found, start + found + len(needle)
    return start, start


def _snap(text: str, start: int, end: int, hit_start: int, hit_end: int) -> tuple[int, int]:
    """Moves both edges inwards to the nearest sentence boundary within SNAP_CHARS, never into the hit."""
    sentences = split_sentences(text)
    if start > 0:
        last = min(start + SNAP_CHARS, max(start, hit_start))
        start = next((sentence.start for sentence in sentences if start <= sentence.start <= last), start)
    if end < len(text):
        first = max(end - SNAP_CHARS, min(end, hit_end))
        end = next((sentence.end for sentence in reversed(sentences) if first <= sentence.end <= end), end)
    return start, end


def fit_budget(
    chunks: Sequence[RetrievedChunk], needles: Sequence[str], *, max_tokens: int
) -> tuple[RetrievedChunk, ...]:
    """As many chunks, in order, as `max_tokens` hold together with their headings; at least one if there is any."""
    kept = tuple(_fitting(chunks, max_tokens))
    if kept or not chunks:
        return kept
    best = chunks[0]
    while len(best.content) > 1 and passage_tokens(best) > max_tokens:
        best = cut_window(best, needles, max_chars=len(best.content) // 2)
    return (best,)


def _fitting(chunks: Sequence[RetrievedChunk], max_tokens: int) -> Iterator[RetrievedChunk]:
    left = max_tokens
    for chunk in chunks:
        tokens = passage_tokens(chunk)
        if tokens <= left:
            left -= tokens
            yield chunk


def passage_tokens(chunk: RetrievedChunk) -> int:
    """What a passage costs in the prompt: its text, and its document's name and headings."""
    return estimate_tokens(f"{chunk.document_name} {chunk.heading_path}\n{chunk.content}")
