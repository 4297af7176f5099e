"""Every encoded term is found again by the full-text engines under their default settings."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Protocol

import dj_database_url
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docmind.text import encode_term, encode_terms, segment

WITH_SERVICES = os.environ.get("DOCMIND_TEST_SERVICES") == "1"
LOCAL_SERVER = "mysql://root@127.0.0.1:3306/docmind"

# Two characters and one, MySQL's stop words, identifiers, terms longer than any engine indexes.
TERMS = [
    "拆分",
    "端口",
    "锁",
    "的",
    "the",
    "about",
    "www",
    "a",
    "c++",
    "server.shutdown",
    "e1205",
    "x" * 90,
    "拆分" * 40,
]


class Index(Protocol):
    def replace(self, documents: Sequence[Sequence[str]]) -> None:
        """Makes `documents`, each a list of terms, the only ones; they are numbered from 0."""

    def find(self, term: str) -> set[int]:
        """The numbers of the documents that hold `term`."""


class Fts5Index:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        connection.execute("CREATE VIRTUAL TABLE chunk USING fts5(search_text)")

    def replace(self, documents: Sequence[Sequence[str]]) -> None:
        self.connection.execute("DELETE FROM chunk")
        rows = [(number, encode_terms(terms)) for number, terms in enumerate(documents)]
        self.connection.executemany("INSERT INTO chunk(rowid, search_text) VALUES (?, ?)", rows)

    def find(self, term: str) -> set[int]:
        query = "SELECT rowid FROM chunk WHERE chunk MATCH ?"
        return {row[0] for row in self.connection.execute(query, (encode_term(term),))}


class MySQLIndex:
    def __init__(self, connection: Any, engine: str) -> None:
        self.connection = connection
        self.table = f"chunk_{engine.lower()}"
        self._execute(
            f"CREATE TABLE {self.table} (id INT PRIMARY KEY, search_text MEDIUMTEXT, FULLTEXT (search_text))"
            f" ENGINE={engine} CHARSET=utf8mb4"
        )

    def _execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())

    def replace(self, documents: Sequence[Sequence[str]]) -> None:
        self._execute(f"DELETE FROM {self.table}")
        for number, terms in enumerate(documents):
            self._execute(f"INSERT INTO {self.table} VALUES (%s, %s)", (number, encode_terms(terms)))
        self.connection.commit()

    def find(self, term: str) -> set[int]:
        query = f"SELECT id FROM {self.table} WHERE MATCH (search_text) AGAINST (%s IN BOOLEAN MODE)"
        return {row[0] for row in self._execute(query, (f"+{encode_term(term)}",))}


@pytest.fixture(scope="module", params=["fts5", "InnoDB", "MyISAM"])
def index(request: pytest.FixtureRequest) -> Iterator[Index]:
    if request.param == "fts5":
        with closing(sqlite3.connect(":memory:")) as connection:
            yield Fts5Index(connection)
        return
    if not WITH_SERVICES:
        pytest.skip("needs a MySQL or MariaDB server: DOCMIND_TEST_SERVICES=1")
    with closing(_connect()) as server, closing(server.cursor()) as cursor:
        database = f"test_fulltext_{request.param.lower()}_{os.getpid()}"
        cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        try:
            cursor.execute(f"USE {database}")
            yield MySQLIndex(server, request.param)
        finally:
            cursor.execute(f"DROP DATABASE {database}")


def _connect() -> Any:
    import MySQLdb

    address = dj_database_url.parse(os.environ.get("DATABASE_URL") or LOCAL_SERVER)
    return MySQLdb.connect(
        host=address["HOST"],
        port=int(address["PORT"] or 3306),
        user=address["USER"],
        password=address["PASSWORD"],
        charset="utf8mb4",
    )


@pytest.mark.parametrize("term", TERMS)
def test_it_finds_the_one_document_that_holds_the_term(index: Index, term: str) -> None:
    index.replace([[other] for other in TERMS])
    assert index.find(term) == {TERMS.index(term)}


def test_it_finds_short_chinese_words_of_a_sentence(index: Index) -> None:
    index.replace([segment("服务拆分之后用锁，端口由 server.shutdown 决定"), segment("数据库连接池")])
    for query in ("拆分", "端口", "锁", "server.shutdown"):
        assert index.find(query) == {0}


@given(st.lists(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4), min_size=1, max_size=4))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_finds_exactly_the_documents_that_hold_a_term(index: Index, documents: list[list[str]]) -> None:
    index.replace(documents)
    for term in {term for terms in documents for term in terms}:
        assert index.find(term) == {number for number, terms in enumerate(documents) if term in terms}
