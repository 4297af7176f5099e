"""Segmentation: the one function that turns documents and queries into search terms.

1. Text is normalised (NFKC) and scanned into lexemes.
2. A Han run goes through jieba's search mode: words, and the dictionary words inside longer ones. A word that jieba
   guessed (not in its dictionary) also gives its characters and bigrams, because in another sentence the same
   characters may be guessed differently. Dictionary words that lie across a cut follow at the end of the run: of
   拆分为 jieba makes 拆 and 分为, and whoever looks for 拆分 must find it all the same.
3. A run of another unspaced script (kana, Thai, …) gives overlapping bigrams.
4. A word gives itself and, when it is compound, its parts.
5. Everything is casefolded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources

import jieba

from docmind.text.identifiers import whole_and_parts
from docmind.text.lexemes import scan

LONGEST_ACROSS = 4

_tokenizer = jieba.Tokenizer()
_tokenizer_lock = threading.Lock()


def _silence_jieba() -> None:
    """jieba attaches its own handler, which writes to stderr, when it is imported."""
    logger = logging.getLogger("jieba")
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
    logger.setLevel(logging.WARNING)


_silence_jieba()


def warm_up() -> None:
    """Loads the dictionary (about half a second, once a process). Safe to call from several threads.

    jieba's own initialisation keeps a cache in the shared temporary folder, where another account could put a file
    in its place; the dictionary is built in memory instead and nothing is written.
    """
    if _tokenizer.initialized:
        return
    with _tokenizer_lock:
        if not _tokenizer.initialized:
            _tokenizer.FREQ, _tokenizer.total = _tokenizer.gen_pfdict(_tokenizer.get_dict_file())
            _tokenizer.initialized = True


def segment(text: str) -> list[str]:
    """The search terms of `text` in order, with repeats; punctuation is dropped, one-character Han terms are kept."""
    warm_up()
    terms: list[str] = []
    for lexeme in scan(text):
        if lexeme.kind == "han":
            terms.extend(_han_terms(lexeme.text))
        elif lexeme.kind == "unspaced":
            terms.extend(_bigrams(lexeme.text))
        else:
            terms.extend(_word_terms(lexeme.text))
    return terms


def significant_terms(text: str) -> tuple[str, ...]:
    """The distinct terms of `text` that are no stop words; if all are, the distinct terms. Empty only without terms."""
    distinct = tuple(dict.fromkeys(segment(text)))
    return tuple(term for term in distinct if term not in STOP_WORDS) or distinct


def _han_terms(run: str) -> Iterator[str]:
    known = _tokenizer.FREQ
    cuts: list[int] = []
    place = 0
    for word in _tokenizer.cut(run):
        if len(word) > 1 and not known.get(word):
            yield from word
            if len(word) > 2:
                yield from (bigram for bigram in _bigrams(word) if not known.get(bigram))
        yield from _words_inside(word)
        yield word
        place += len(word)
        cuts.append(place)
    yield from _words_across(run, cuts[:-1])


def _words_inside(word: str) -> Iterator[str]:
    """Dictionary words of two and three characters inside a longer one, as jieba's search mode gives them."""
    for length in (2, 3):
        if len(word) > length:
            parts = (word[start : start + length] for start in range(len(word) - length + 1))
            yield from (part for part in parts if _tokenizer.FREQ.get(part))


def _words_across(run: str, cuts: Iterable[int]) -> Iterator[str]:
    """Dictionary words of two to LONGEST_ACROSS characters that begin before a cut and end behind it."""
    seen: set[tuple[int, int]] = set()
    for cut in cuts:
        for length in range(2, LONGEST_ACROSS + 1):
            for start in range(max(0, cut - length + 1), min(cut, len(run) - length + 1)):
                span = (start, start + length)
                if span not in seen and _tokenizer.FREQ.get(run[slice(*span)]):
                    seen.add(span)
                    yield run[slice(*span)]


def _bigrams(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(max(1, len(run) - 1))]


def _word_terms(word: str) -> Iterable[str]:
    if word.isalpha() and (word.islower() or word.istitle()):
        return (word.casefold(),)
    return _compound_terms(word)


@lru_cache(maxsize=4096)
def _compound_terms(word: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.casefold() for term in whole_and_parts(word)))


def _read_stop_words() -> frozenset[str]:
    lines = resources.files("docmind.text").joinpath("stop_words.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


STOP_WORDS = _read_stop_words()
