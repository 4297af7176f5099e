"""Hot configuration: one row a key, and every change of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class AiConfig(models.Model):
    class ValueType(models.TextChoices):
        INTEGER = "int", _("whole number")
        FLOAT = "float", _("number")
        BOOLEAN = "bool", _("on or off")
        STRING = "str", _("text")

    key = models.CharField(_("key"), max_length=100, unique=True)
    value = models.TextField(_("value"), blank=True)
    value_type = models.CharField(_("type"), max_length=8, choices=ValueType.choices, editable=False)
    category = models.CharField(_("category"), max_length=32, editable=False)
    description = models.CharField(_("description"), max_length=300, editable=False)
    default = models.TextField(_("default"), blank=True, editable=False)
    minimum = models.FloatField(_("minimum"), null=True, editable=False)
    maximum = models.FloatField(_("maximum"), null=True, editable=False)
    choices = models.JSONField(_("choices"), default=list, editable=False)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        db_table = "sys_ai_config"
        ordering = ("category", "key")
        verbose_name = _("configuration key")
        verbose_name_plural = _("configuration")

    def __str__(self) -> str:
        return self.key


class AiConfigRevision(models.Model):
    config = models.ForeignKey(AiConfig, on_delete=models.CASCADE, related_name="revisions")
    old_value = models.TextField(_("old value"), blank=True)
    new_value = models.TextField(_("new value"), blank=True)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(_("changed"), auto_now_add=True)

    class Meta:
        db_table = "sys_ai_config_revision"
        ordering = ("-changed_at", "-id")
        verbose_name = _("configuration change")
        verbose_name_plural = _("configuration changes")

    def __str__(self) -> str:
        return f"{self.config_id} {self.changed_at:%Y-%m-%d %H:%M}"
