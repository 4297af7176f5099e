from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.kb.retrieval.compress import SNAP_CHARS, compress, cut_window, drop_repeats, passage_tokens
from tests.kb.retrieval.corpus import passage

CONFIG = ConfigSnapshot()


def sentences(count: int, first: int = 0) -> str:
    return "".join(f"这是第 {number:04d} 句关于缓存与队列的说明文字。" for number in range(first, first + count))


def test_it_drops_the_same_chunk_the_same_text_and_near_copies() -> None:
    original = passage(1, sentences(20), score=0.9)
    near = passage(3, sentences(20).replace("0007", "7"), score=0.7)
    other = passage(4, "完全不同的内容：端口被占用时换一个端口。", score=0.6)
    kept = drop_repeats([original, original, passage(2, sentences(20)), near, other], near_duplicate_jaccard=0.85)
    assert [chunk.chunk_id for chunk in kept] == [1, 4]


def test_it_keeps_the_longer_text_in_the_better_place() -> None:
    short, other = passage(1, "端口是 8080。", score=0.9), passage(3, "别的内容。", score=0.8)
    longer = passage(2, "默认端口是 8080。可以修改。", score=0.3)
    kept = drop_repeats([short, other, longer], near_duplicate_jaccard=0.85)
    assert [(chunk.chunk_id, chunk.rerank_score) for chunk in kept] == [(2, 0.9), (3, 0.8)]


def test_it_centres_the_window_on_the_child_and_ends_it_with_sentences() -> None:
    text = sentences(100)
    child = text[1200:1500]
    cut = cut_window(passage(1, text, child=child, start=50), ["第"], max_chars=800)
    assert child in cut.content
    assert 800 - 2 * SNAP_CHARS <= len(cut.content) <= 800
    assert cut.content.startswith("这是第")
    assert cut.content.endswith("。")
    assert text[cut.start_char - 50 : cut.end_char - 50] == cut.content
    assert (cut.child_start, cut.child_content) == (1250, child)


def test_it_looks_for_a_query_term_where_the_child_itself_is_too_long() -> None:
    text = sentences(60) + "错误 E1205 表示锁超时。" + sentences(60, 60)
    assert "E1205" in cut_window(passage(1, text), ["e1205"], max_chars=800).content
    assert cut_window(passage(1, text), ["没有"], max_chars=800).content.startswith("这是第 0000 句")


@given(
    text=st.text(alphabet="端口。.! \nab", min_size=1, max_size=400),
    place=st.integers(0, 399),
    length=st.integers(1, 60),
    limit=st.integers(100, 200),
)
def test_it_never_loses_the_child_or_the_offsets(text: str, place: int, length: int, limit: int) -> None:
    place = min(place, len(text) - 1)
    child = text[place : place + length]
    chunk = passage(1, text, child=child, start=1000)
    cut = cut_window(chunk, ["端口"], max_chars=limit)
    assert len(cut.content) <= limit
    assert text[cut.start_char - 1000 : cut.end_char - 1000] == cut.content
    assert cut.start_char <= chunk.child_start <= chunk.child_end <= cut.end_char


def test_it_skips_what_does_not_fit_and_goes_on() -> None:
    chunks = [passage(1, sentences(8)), passage(2, sentences(30, 100)), passage(3, "端口是 8080。")]
    config = ConfigSnapshot(rag_context_max_tokens=passage_tokens(chunks[0]) + passage_tokens(chunks[2]))
    assert [chunk.chunk_id for chunk in compress(chunks, "端口", config=config)] == [1, 3]
    assert len(compress(chunks, "端口", config=config, fit_prompt=False)) == 3


def test_it_shortens_the_first_when_nothing_fits() -> None:
    config = ConfigSnapshot(rag_context_max_tokens=200, compress_max_chunk_chars=5000)
    [only] = compress([passage(1, sentences(100))], "队列", config=config)
    assert 0 < passage_tokens(only) <= 200


def test_it_takes_nothing() -> None:
    assert compress([], "端口", config=CONFIG) == ()
