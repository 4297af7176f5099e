"""What can be done to knowledge bases and documents: each verb is one transaction.

Permission checks are the callers' duty. Errors: PermanentError with the codes `invalid`, `not_found`, `conflict`,
`empty_document`, `unsupported_file`, `file_too_large`; TransientError when the database is busy.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Any

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.aiconfig.services import current_config
from apps.kb import tasks
from apps.kb.ingestion import files
from apps.kb.ingestion.lease import ACTIVE, may_take_over
from apps.kb.ingestion.parsers.registry import HEAD_BYTES, choose_parser
from apps.kb.ingestion.removal import discard_staged, remove_document, remove_knowledge_base
from apps.kb.ingestion.transactions import retried, write_transaction
from apps.kb.ingestion.types import PageStart
from apps.kb.models import Document, KnowledgeBase
from apps.rbac.models import User
from docmind.errors import PermanentError

MAX_NAME_CHARS = 255
_EDITABLE = frozenset({"name", "description", "visibility"})


def create_knowledge_base(
    owner: User, *, name: str, description: str = "", visibility: str = KnowledgeBase.Visibility.PUBLIC
) -> KnowledgeBase:
    knowledge_base = KnowledgeBase(owner=owner, name=name, description=description, visibility=visibility)
    _check(knowledge_base)
    knowledge_base.save()
    return knowledge_base


def update_knowledge_base(knowledge_base: KnowledgeBase, **fields: Any) -> KnowledgeBase:
    """Changes name, description or visibility."""
    if unknown := fields.keys() - _EDITABLE:
        raise PermanentError(_("These fields cannot be changed: %(names)s") % {"names": ", ".join(sorted(unknown))})
    for name, value in fields.items():
        setattr(knowledge_base, name, value)
    _check(knowledge_base)
    knowledge_base.save(update_fields=[*fields, "updated_at"])
    return knowledge_base


@retried
def delete_knowledge_base(knowledge_base: KnowledgeBase) -> None:
    """Deletes it with its documents, chunks and vectors; what is being ingested ends quietly."""
    with write_transaction():
        # Documents are locked before their knowledge base, as everywhere.
        list(Document.objects.select_for_update().filter(knowledge_base=knowledge_base).order_by("pk"))
        locked = _lock_knowledge_base(knowledge_base.pk)
        documents = list(Document.objects.filter(knowledge_base=locked))
        for document in documents:
            _forget_after_commit(document, locked.embedding_fingerprint)
        remove_knowledge_base(locked)


def upload_document(
    knowledge_base: KnowledgeBase, *, user: User | None, name: str, file: File[bytes], source_path: str = ""
) -> Document:
    """Stores an upload and queues its ingestion. Refuses what is too large, empty, or of no known format."""
    name = _clean_name(name)
    mime_type = _check_upload(name, file)
    digest = _sha256(file)
    key = files.store_original(knowledge_base.pk, name, file)
    try:
        with write_transaction():
            document = Document.objects.create(
                knowledge_base=knowledge_base,
                uploaded_by=user,
                source_name=name,
                source_path=source_path,
                mime_type=mime_type,
                size_bytes=file.size,
                sha256=digest,
                storage_key=key,
                revision=1,
                heartbeat_at=timezone.now(),
            )
            tasks.enqueue_ingest(document.pk)
    except BaseException:
        files.remove((key,))
        raise
    return document


def replace_document(document: Document, *, name: str, file: File[bytes]) -> Document:
    """Gives a document a new original; the old version answers until the new one is published."""
    name = _clean_name(name)
    mime_type = _check_upload(name, file)
    digest = _sha256(file)
    key = files.store_original(document.knowledge_base_id, name, file)
    try:
        with write_transaction():
            locked = _lock_document(document.pk)
            old = (locked.storage_key, *files.keys_of_markdown(files.markdown_key(locked.storage_key, locked.revision)))
            stale = [name for name in old if not name.startswith(locked.markdown_key or "\0")]
            locked.source_name, locked.mime_type, locked.storage_key = name, mime_type, key
            locked.size_bytes, locked.sha256 = file.size, digest
            _begin_again(locked)
            transaction.on_commit(lambda: files.remove(stale), robust=True)
    except BaseException:
        files.remove((key,))
        raise
    return locked


@retried
def delete_document(document: Document) -> None:
    """Deletes rows, search rows and statistics at once for all readers; files and vectors follow."""
    with write_transaction():
        locked = _lock_document(document.pk)
        knowledge_base = _lock_knowledge_base(locked.knowledge_base_id)
        KnowledgeBase.objects.filter(pk=knowledge_base.pk).update(version=F("version") + 1, updated_at=timezone.now())
        _forget_after_commit(locked, knowledge_base.embedding_fingerprint)
        remove_document(locked)


@retried
def reingest_document(document: Document) -> Document:
    """Parses and indexes the original again; unchanged chunks keep their rows and vectors."""
    with write_transaction():
        locked = _lock_document(document.pk)
        if (
            locked.status in ACTIVE
            and locked.lease_owner
            and not may_take_over(locked.lease_owner, locked.heartbeat_at, timezone.now())
        ):
            raise PermanentError(_("The document is being processed already."), code="conflict")
        _begin_again(locked)
    return locked


@retried
def cancel_document(document: Document) -> Document:
    """Stops ingestion at its next batch. What is published already keeps answering."""
    with write_transaction():
        locked = _lock_document(document.pk)
        if locked.status not in ACTIVE:
            raise PermanentError(_("The document is not being processed."), code="conflict")
        locked.status, locked.lease_owner = Document.Status.CANCELLED, ""
        locked.save(update_fields=["status", "lease_owner", "updated_at"])
        discard_staged(locked.pk)
    return locked


def read_markdown(document: Document) -> str:
    """The published Markdown, to which all offsets refer. Raises `not_found` before the first publication."""
    try:
        return files.load_markdown(_published_key(document))
    except FileNotFoundError:
        raise _no_text() from None


def document_pages(document: Document) -> tuple[PageStart, ...]:
    """Where each page begins in the Markdown; empty for formats without pages. Raises `not_found` as above."""
    try:
        return files.load_pages(_published_key(document))
    except FileNotFoundError:
        raise _no_text() from None


def open_original(document: Document) -> File[bytes]:
    """The uploaded file, open for reading; the caller closes it. Raises `not_found`."""
    try:
        return default_storage.open(document.storage_key, "rb")
    except FileNotFoundError:
        raise PermanentError(_("The original file is missing."), code="not_found") from None


def _check(knowledge_base: KnowledgeBase) -> None:
    knowledge_base.name = knowledge_base.name.strip()
    knowledge_base.full_clean(exclude=["owner"])


def _lock_document(pk: int) -> Document:
    try:
        return Document.objects.select_for_update().get(pk=pk)
    except Document.DoesNotExist:
        raise PermanentError(_("The document does not exist."), code="not_found") from None


def _lock_knowledge_base(pk: int) -> KnowledgeBase:
    try:
        return KnowledgeBase.objects.select_for_update().get(pk=pk)
    except KnowledgeBase.DoesNotExist:
        raise PermanentError(_("The knowledge base does not exist."), code="not_found") from None


def _begin_again(locked: Document) -> None:
    """A new revision from the start, whoever worked on the last one; queued on commit."""
    unpublished = files.markdown_key(locked.storage_key, locked.revision)
    if unpublished != locked.markdown_key:
        transaction.on_commit(lambda: files.remove(files.keys_of_markdown(unpublished)), robust=True)
    locked.revision += 1
    locked.status, locked.progress = Document.Status.PENDING, 0.0
    locked.error_code = locked.error = locked.lease_owner = ""
    locked.attempts, locked.not_before, locked.heartbeat_at = 0, None, timezone.now()
    locked.save()
    tasks.enqueue_ingest(locked.pk)


def _forget_after_commit(document: Document, fingerprint: str) -> None:
    document_id = document.pk
    keys = [document.storage_key, *files.keys_of_markdown(document.markdown_key)]
    keys += files.keys_of_markdown(files.markdown_key(document.storage_key, document.revision))
    transaction.on_commit(lambda: files.remove(keys), robust=True)
    tasks.enqueue_forget_vectors(document_id, fingerprint)


def _published_key(document: Document) -> str:
    if not document.markdown_key:
        raise _no_text()
    return document.markdown_key


def _no_text() -> PermanentError:
    return PermanentError(_("The document has no text yet."), code="not_found")


def _clean_name(name: str) -> str:
    """The last part of a path, without control characters, short enough to store; the suffix is kept."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    printable = "".join(character for character in last if character.isprintable()).strip()
    if printable in {"", ".", ".."}:
        raise PermanentError(_("The file has no name."))
    if len(printable) <= MAX_NAME_CHARS:
        return printable
    suffix = PurePosixPath(printable).suffix[:20]
    return printable[: MAX_NAME_CHARS - len(suffix)] + suffix


def _check_upload(name: str, file: File[bytes]) -> str:
    """The file's MIME type, by its content."""
    limit_mb = current_config().ingest_max_file_mb
    if file.size > limit_mb * 1024 * 1024:
        raise PermanentError(
            _("The file is larger than the limit of %(limit)d MB.") % {"limit": limit_mb}, code="file_too_large"
        )
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if not head.strip() and all(not piece.strip() for piece in file.chunks()):
        raise PermanentError(_("The file is empty."), code="empty_document")
    return choose_parser(head, name).mime_type


def _sha256(file: File[bytes]) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    for piece in file.chunks():
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()
