"""The full-text table on whichever engine the tests run on: the same matches from FTS5 and from InnoDB."""

from __future__ import annotations

import pytest

from apps.kb import fulltext
from docmind.text import encode_term, encode_terms
from tests.factories import KnowledgeBaseFactory
from tests.kb.retrieval.corpus import add_chunk, add_document

pytestmark = pytest.mark.django_db(transaction=True)


def find(groups: list[list[str]], kb_ids: set[int], **options: object) -> list[int]:
    encoded = [[encode_term(term) for term in group] for group in groups]
    return [row.chunk_id for row in fulltext.match(encoded, kb_ids=kb_ids, limit=10, **options)]  # type: ignore[arg-type]


def test_it_matches_any_and_all_terms_in_the_order_of_ids() -> None:
    document = add_document(KnowledgeBaseFactory())
    kb_ids = {document.knowledge_base_id}
    first, second, third = (add_chunk(document, text).pk for text in ("端口 配置", "端口", "拆分 配置 端口"))
    assert find([["拆分"], ["端口"]], kb_ids) == [first, second, third]
    assert find([["端口", "配置"]], kb_ids) == [first, third]
    assert find([["拆分", "配置"], ["端口", "拆分"]], kb_ids) == [third]
    assert find([["没有"]], kb_ids) == []


def test_it_gives_the_lowest_ids_when_there_are_more_than_the_limit() -> None:
    document = add_document(KnowledgeBaseFactory())
    ids = [add_chunk(document, "端口").pk for _ in range(5)]
    rows = fulltext.match([[encode_term("端口")]], kb_ids={document.knowledge_base_id}, limit=3)
    assert [row.chunk_id for row in rows] == ids[:3]
    assert (rows[0].search_text, rows[0].term_count) == (encode_term("端口"), 1)


def test_it_finds_only_live_rows_in_the_given_knowledge_bases_and_documents() -> None:
    document, other = add_document(KnowledgeBaseFactory()), add_document(KnowledgeBaseFactory())
    sibling = add_document(document.knowledge_base)
    mine, its = add_chunk(document, "port"), add_chunk(sibling, "port")
    add_chunk(other, "port")
    add_chunk(document, "port", live=False)
    kb_ids = {document.knowledge_base_id}
    assert find([["port"]], kb_ids) == [mine.pk, its.pk]
    assert find([["port"]], kb_ids, document_ids={document.pk}) == [mine.pk]
    assert find([["port"]], kb_ids, document_ids={other.pk}) == []
    assert find([["port"]], kb_ids, document_ids=set()) == []
    assert find([["port"]], set()) == []


def test_it_replaces_deletes_and_lists_rows() -> None:
    document = add_document(KnowledgeBaseFactory())
    kb_ids = {document.knowledge_base_id}
    kept, gone = add_chunk(document, "port").pk, add_chunk(document, "port").pk
    fulltext.write_rows([(kept, encode_terms(["host"]))])
    assert find([["port"]], kb_ids) == [gone]
    assert find([["host"]], kb_ids) == [kept]
    assert fulltext.row_ids(document.pk) == {kept, gone}
    fulltext.delete_rows([gone, gone + 1000])
    assert fulltext.row_ids(document.pk) == {kept}
    fulltext.write_rows([(gone + 1000, "z7aport")])
    assert fulltext.orphan_ids() == {gone + 1000}
    fulltext.clear()
    assert fulltext.row_ids(document.pk) == set()


@pytest.mark.parametrize("term", ["", "a b", 'z7a"', "z7a*", "端口", "NEAR(a b)", "-z7aport"])
def test_it_refuses_what_is_not_an_encoded_term(term: str) -> None:
    with pytest.raises(ValueError, match="encoded"):
        fulltext.match([[term]], kb_ids={1}, limit=1)
