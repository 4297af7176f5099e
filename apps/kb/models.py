"""Knowledge bases, their documents and chunks, and the statistics keyword search needs."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.rbac.models import Role


class KnowledgeBase(models.Model):
    class Visibility(models.TextChoices):
        PUBLIC = "public", _("Everyone signed in")
        RESTRICTED = "restricted", _("People and roles chosen")
        PRIVATE = "private", _("Only the owner")

    name = models.CharField(_("name"), max_length=120)
    description = models.CharField(_("description"), max_length=1000, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="knowledge_bases",
        verbose_name=_("owner"),
    )
    visibility = models.CharField(_("visibility"), max_length=16, choices=Visibility.choices, default=Visibility.PUBLIC)
    version = models.PositiveBigIntegerField(_("version"), default=0, editable=False)
    embedding_fingerprint = models.CharField(_("embedding"), max_length=64, blank=True, editable=False)
    chunk_count = models.PositiveBigIntegerField(_("chunks"), default=0, editable=False)
    term_total = models.PositiveBigIntegerField(_("terms in all chunks"), default=0, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        db_table = "kb_knowledge_base"
        ordering = ("name", "id")
        verbose_name = _("knowledge base")
        verbose_name_plural = _("knowledge bases")

    def __str__(self) -> str:
        return self.name


class Document(models.Model):
    class Status(models.TextChoices):
        PENDING = "pending", _("waiting")
        PARSING = "parsing", _("parsing")
        CHUNKING = "chunking", _("splitting")
        INDEXING = "indexing", _("indexing")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    source_name = models.CharField(_("name"), max_length=255)
    source_path = models.CharField(_("path"), max_length=1000, blank=True)
    mime_type = models.CharField(_("type"), max_length=100, blank=True)
    size_bytes = models.PositiveBigIntegerField(_("size"), default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    storage_key = models.CharField(max_length=300, blank=True)
    markdown_key = models.CharField(max_length=300, blank=True)
    doc_version = models.CharField(_("version"), max_length=64, blank=True)
    effective_date = models.DateField(_("effective from"), null=True, blank=True)
    status = models.CharField(_("state"), max_length=16, choices=Status.choices, default=Status.PENDING)
    progress = models.FloatField(_("progress"), default=0.0)
    error_code = models.CharField(max_length=64, blank=True)
    error = models.CharField(_("error"), max_length=1000, blank=True)
    page_count = models.PositiveIntegerField(_("pages"), null=True, blank=True)
    chunk_count = models.PositiveIntegerField(_("chunks"), default=0)
    parser = models.CharField(_("parser"), max_length=64, blank=True)
    revision = models.PositiveIntegerField(default=0)
    """Rises with each (re-)ingestion; staged chunks carry it until they are published."""
    attempts = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    """The sweep leaves a row alone until then (back-off after a transient failure)."""
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        db_table = "kb_document"
        ordering = ("-created_at", "-id")
        indexes: ClassVar = [
            models.Index(fields=("knowledge_base", "status"), name="idx_doc_kb_status"),
            models.Index(fields=("status", "heartbeat_at"), name="idx_doc_lease"),
            models.Index(fields=("knowledge_base", "sha256"), name="idx_doc_kb_sha"),
        ]
        verbose_name = _("document")
        verbose_name_plural = _("documents")

    def __str__(self) -> str:
        return self.source_name


class Chunk(models.Model):
    class ContentType(models.TextChoices):
        PROCEDURE = "procedure", _("procedure")
        WARNING = "warning", _("warning")
        EXAMPLE = "example", _("example")
        DEFINITION = "definition", _("definition")
        GENERAL = "general", _("general")

    class VectorState(models.TextChoices):
        NONE = "none", _("not embedded")
        PENDING = "pending", _("waiting")
        STORED = "stored", _("stored")

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="chunks")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    parent_chunk = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="children")
    revision = models.PositiveIntegerField(default=0)
    chunk_index = models.PositiveIntegerField(_("number"))
    content = models.TextField(_("text"))
    content_hash = models.CharField(max_length=64)
    lang = models.CharField(_("language"), max_length=8)
    content_type = models.CharField(_("kind"), max_length=16, choices=ContentType.choices, default=ContentType.GENERAL)
    heading_path = models.CharField(_("headings"), max_length=1000, blank=True)
    page = models.PositiveIntegerField(_("page"), null=True, blank=True)
    start_char = models.PositiveIntegerField()
    end_char = models.PositiveIntegerField()
    tags = models.JSONField(_("tags"), default=list)
    doc_version = models.CharField(max_length=64, blank=True)
    effective_date = models.DateField(null=True, blank=True)
    source_file_name = models.CharField(max_length=255, blank=True)
    term_count = models.PositiveIntegerField(default=0)
    """Length in terms, for BM25; 0 for parents."""
    vector_id = models.BigIntegerField(null=True, blank=True, db_index=True)
    """Null for parents: only children are embedded and searched."""
    vector_state = models.CharField(max_length=8, choices=VectorState.choices, default=VectorState.NONE)
    live = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "kb_chunk"
        ordering = ("document_id", "chunk_index", "id")
        indexes: ClassVar = [
            models.Index(fields=("document", "live", "chunk_index"), name="idx_chunk_doc"),
            models.Index(fields=("document", "content_hash"), name="idx_chunk_hash"),
            models.Index(fields=("knowledge_base", "live"), name="idx_chunk_kb"),
            models.Index(fields=("document", "vector_state"), name="idx_chunk_vector_state"),
        ]
        verbose_name = _("chunk")
        verbose_name_plural = _("chunks")

    def __str__(self) -> str:
        return f"{self.source_file_name} #{self.chunk_index}"


class TermStat(models.Model):
    """In how many live children of a knowledge base a term occurs."""

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    term = models.CharField(max_length=64)
    """Encoded form (`docmind.text.encode_term`), the same as in kb_chunk_search."""
    document_frequency = models.PositiveBigIntegerField(default=0)

    class Meta:
        db_table = "kb_term_stat"
        constraints: ClassVar = [models.UniqueConstraint(fields=("knowledge_base", "term"), name="uniq_kb_term")]
        verbose_name = _("term statistic")
        verbose_name_plural = _("term statistics")

    def __str__(self) -> str:
        return f"{self.knowledge_base_id}:{self.term}"


class AccessGrant(models.Model):
    class Level(models.TextChoices):
        READ = "read", _("read")
        MANAGE = "manage", _("manage")

    knowledge_base = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="grants")
    role = models.ForeignKey(Role, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    level = models.CharField(_("level"), max_length=8, choices=Level.choices, default=Level.READ)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "kb_access_grant"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(role__isnull=True, user__isnull=False)
                | models.Q(role__isnull=False, user__isnull=True),
                name="grant_role_xor_user",
            ),
            models.UniqueConstraint(fields=("knowledge_base", "user"), name="uniq_grant_user"),
            models.UniqueConstraint(fields=("knowledge_base", "role"), name="uniq_grant_role"),
        ]
        verbose_name = _("access grant")
        verbose_name_plural = _("access grants")

    def __str__(self) -> str:
        return f"{self.knowledge_base_id}: {self.role_id or self.user_id} {self.level}"
