"""Conversations, their messages with everything an answer rested on, and the registry of MCP tools."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Conversation(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations")
    title = models.CharField(_("title"), max_length=200, blank=True)
    kb_ids = models.JSONField(_("knowledge bases"), default=list)
    """Chosen knowledge bases; empty means all that the user may read."""
    message_count = models.PositiveIntegerField(_("messages"), default=0)
    last_active_at = models.DateTimeField(_("last active"), auto_now_add=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        db_table = "qa_conversation"
        ordering = ("-last_active_at", "-id")
        indexes: ClassVar = [models.Index(fields=("user", "-last_active_at"), name="idx_conv_user")]
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")

    def __str__(self) -> str:
        return self.title or f"#{self.pk}"


class Message(models.Model):
    class Role(models.TextChoices):
        USER = "user", _("user")
        ASSISTANT = "assistant", _("assistant")

    class Status(models.TextChoices):
        STREAMING = "streaming", _("being written")
        DONE = "done", _("done")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")

    class Band(models.TextChoices):
        HIGH = "HIGH", _("high")
        MEDIUM = "MEDIUM", _("medium")
        LOW = "LOW", _("low")

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(_("role"), max_length=16, choices=Role.choices)
    content = models.TextField(_("text"), blank=True)
    sources = models.JSONField(_("sources"), default=list)
    citations = models.JSONField(_("citations"), default=list)
    agent_trace = models.JSONField(_("trace"), default=list)
    mcp_calls = models.JSONField(_("tool calls"), default=list)
    retrieval_log = models.JSONField(_("retrieval log"), default=dict)
    confidence_score = models.FloatField(_("confidence"), null=True, blank=True)
    confidence_band = models.CharField(_("band"), max_length=8, choices=Band.choices, blank=True)
    citation_coverage = models.FloatField(_("coverage"), null=True, blank=True)
    invalid_refs = models.PositiveIntegerField(_("invalid references"), default=0)
    is_fallback = models.BooleanField(_("without evidence"), default=False)
    intent = models.CharField(_("intent"), max_length=32, blank=True)
    model = models.CharField(_("model"), max_length=100, blank=True)
    input_tokens = models.PositiveIntegerField(_("tokens read"), null=True, blank=True)
    output_tokens = models.PositiveIntegerField(_("tokens written"), null=True, blank=True)
    response_time_ms = models.PositiveIntegerField(_("response time (ms)"), null=True, blank=True)
    feedback = models.SmallIntegerField(_("feedback"), null=True, blank=True)
    """1 thumbs up, -1 thumbs down."""
    feedback_reason = models.CharField(_("reason"), max_length=500, blank=True)
    run_id = models.UUIDField(_("run"), default=uuid.uuid4, db_index=True)
    """Shared by a question and its answer."""
    status = models.CharField(_("state"), max_length=16, choices=Status.choices, default=Status.DONE)
    error_code = models.CharField(max_length=64, blank=True)
    reply_to = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="answers")
    version = models.PositiveSmallIntegerField(_("version"), default=1)
    process_id = models.CharField(max_length=64, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        db_table = "qa_message"
        ordering = ("conversation_id", "id")
        indexes: ClassVar = [
            models.Index(fields=("conversation", "id"), name="idx_msg_conv"),
            models.Index(fields=("status", "heartbeat_at"), name="idx_msg_heartbeat"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("reply_to", "version"), name="uniq_answer_version"),
            models.UniqueConstraint(fields=("run_id", "role"), name="uniq_run_role"),
        ]
        verbose_name = _("message")
        verbose_name_plural = _("messages")

    def __str__(self) -> str:
        return f"{self.role} #{self.pk}"


class McpTool(models.Model):
    name = models.CharField(_("tool"), max_length=64, unique=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    call_count = models.PositiveBigIntegerField(_("calls"), default=0, editable=False)
    avg_latency_ms = models.FloatField(_("mean latency (ms)"), default=0.0, editable=False)
    last_error = models.CharField(_("last error"), max_length=500, blank=True, editable=False)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "mcp_tool_registry"
        ordering = ("name",)
        verbose_name = _("MCP tool")
        verbose_name_plural = _("MCP tools")

    def __str__(self) -> str:
        return self.name
