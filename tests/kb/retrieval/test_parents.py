from __future__ import annotations

from apps.kb.retrieval.parents import expand_parents
from apps.kb.retrieval.types import ParentPassage
from tests.kb.retrieval.corpus import passage

TEXT = "第一句。第二句。第三句。"
PARENT = ParentPassage(content=TEXT, start_char=100, end_char=100 + len(TEXT))


def test_it_shows_the_parent_and_keeps_the_child() -> None:
    [expanded] = expand_parents([passage(1, "第二句。", start=104, parent_id=7, score=0.5)], {7: PARENT})
    assert (expanded.content, expanded.start_char, expanded.end_char) == (TEXT, 100, 112)
    assert (expanded.child_content, expanded.child_start, expanded.child_end) == ("第二句。", 104, 108)
    assert expanded.rerank_score == 0.5


def test_it_keeps_the_best_of_several_children() -> None:
    chunks = [
        passage(3, "第三句。", start=108, parent_id=7, score=0.9),
        passage(4, "别的。", start=500),
        passage(1, "第一句。", start=100, parent_id=7, score=0.4),
    ]
    expanded = expand_parents(chunks, {7: PARENT})
    assert [(chunk.chunk_id, chunk.rerank_score) for chunk in expanded] == [(3, 0.9), (4, 0.0)]


def test_it_leaves_children_alone_whose_parent_is_missing_or_elsewhere() -> None:
    orphan, stranger = passage(1, "第一句。", start=100, parent_id=9), passage(2, "第二句。", start=300, parent_id=7)
    assert expand_parents([orphan, stranger], {7: PARENT}) == (orphan, stranger)
