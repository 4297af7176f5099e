"""Long-term memory of a user: the system of record (rows are superseded, never lost)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class UserMemory(models.Model):
    class Type(models.TextChoices):
        IDENTITY = "identity", _("identity")
        PREFERENCE = "preference", _("preference")
        PROJECT = "project", _("project")
        TECH_STACK = "tech_stack", _("technology")
        FACT = "fact", _("fact")
        INSTRUCTION = "instruction", _("instruction")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memories")
    type = models.CharField(_("type"), max_length=16, choices=Type.choices, default=Type.FACT)
    content = models.TextField(_("content"))
    importance = models.FloatField(_("importance"), default=0.5)
    access_count = models.PositiveIntegerField(_("times used"), default=0)
    last_accessed_at = models.DateTimeField(_("last used"), null=True, blank=True)
    invalidated_at = models.BigIntegerField(_("invalidated"), default=0)
    """Unix milliseconds; 0 while the memory is valid."""
    superseded_by = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    source_message_id = models.BigIntegerField(_("source message"), null=True, blank=True)
    """A plain id: chat lies above memory."""
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated"), auto_now=True)

    class Meta:
        db_table = "user_memory"
        ordering = ("-created_at", "-id")
        indexes: ClassVar = [models.Index(fields=("user", "invalidated_at"), name="idx_memory_user_valid")]
        verbose_name = _("memory")
        verbose_name_plural = _("memories")

    def __str__(self) -> str:
        return f"{self.get_type_display()} #{self.pk}"
