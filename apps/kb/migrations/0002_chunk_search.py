"""The full-text table of keyword search: FTS5 on SQLite, InnoDB FULLTEXT on MySQL and MariaDB.

It has no triggers and no foreign key: the store step writes it, the reconciler checks it.
"""

from django.db import migrations

CREATE = {
    "sqlite": "CREATE VIRTUAL TABLE kb_chunk_search USING fts5(search_text, chunk_id UNINDEXED, tokenize = 'unicode61')",
    "mysql": (
        "CREATE TABLE kb_chunk_search ("
        " chunk_id BIGINT NOT NULL PRIMARY KEY,"
        " search_text MEDIUMTEXT NOT NULL,"
        " FULLTEXT KEY ft_search_text (search_text)"
        ") ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    ),
}


def create(apps, schema_editor):
    schema_editor.execute(CREATE[schema_editor.connection.vendor])


def drop(apps, schema_editor):
    schema_editor.execute("DROP TABLE kb_chunk_search")


class Migration(migrations.Migration):
    atomic = False  # MySQL cannot roll back DDL
    dependencies = [("kb", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
