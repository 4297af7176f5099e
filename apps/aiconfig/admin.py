"""Hot configuration in Django admin: change a value within its bounds; every change is recorded and can be read."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.aiconfig.models import AiConfig, AiConfigRevision
from apps.aiconfig.services import set_config
from apps.aiconfig.snapshot import DECLARATIONS
from apps.rbac.models import User


def bounds_text(config: AiConfig) -> str:
    """What values a key takes: its choices, or its bounds."""
    if config.choices:
        return " · ".join(config.choices)
    if config.minimum is None or config.maximum is None:
        return ""
    return f"{config.minimum:g} – {config.maximum:g}"


class AiConfigForm(forms.ModelForm[AiConfig]):
    class Meta:
        model = AiConfig
        fields = ("value",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "value" in self.fields:
            self.fields["value"] = self._value_field()

    def _value_field(self) -> forms.Field:
        """A field that fits the key: a list for choices and on/off, else one line of text."""
        label, required = _("value"), self.instance.value_type != AiConfig.ValueType.STRING
        choices = list(self.instance.choices)
        if self.instance.value_type == AiConfig.ValueType.BOOLEAN:
            choices = ["true", "false"]
        if choices:
            return forms.ChoiceField(label=label, choices=[(choice, choice) for choice in choices])
        widget = forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"})
        return forms.CharField(label=label, required=required, widget=widget, help_text=bounds_text(self.instance))

    def clean_value(self) -> str:
        declaration = DECLARATIONS.get(self.instance.key)
        if declaration is None:
            raise forms.ValidationError(_("DocMind no longer knows this key."))
        try:
            return declaration.format(declaration.parse(self.cleaned_data["value"]))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


class ChangedFilter(admin.SimpleListFilter):
    title = _("changed values")
    parameter_name = "changed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Changed from the default")), ("no", _("As by default"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AiConfig]) -> QuerySet[AiConfig]:
        match self.value():
            case "yes":
                return queryset.exclude(value=F("default"))
            case "no":
                return queryset.filter(value=F("default"))
            case _:
                return queryset


class RevisionInline(admin.TabularInline[AiConfigRevision, AiConfig]):
    model = AiConfigRevision
    fields = readonly_fields = ("changed_at", "changed_by", "old_value", "new_value")
    ordering = ("-changed_at", "-id")
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AiConfig)
class AiConfigAdmin(admin.ModelAdmin[AiConfig]):
    form = AiConfigForm
    list_display = ("key", "value", "is_changed", "default", "bounds", "explanation", "updated_at")
    list_filter = ("category", ChangedFilter)
    search_fields = ("key", "description", "value")
    ordering = ("category", "key")
    list_per_page = 200
    fields = ("key", "explanation", "value_type", "value", "default", "bounds", "updated_at")
    readonly_fields = ("key", "explanation", "value_type", "default", "bounds", "updated_at")
    inlines: ClassVar = [RevisionInline]
    actions = None

    @admin.display(description=_("changed"), boolean=True)
    def is_changed(self, config: AiConfig) -> bool:
        return config.value != config.default

    @admin.display(description=_("allowed"))
    def bounds(self, config: AiConfig) -> str:
        return bounds_text(config)

    @admin.display(description=_("description"), ordering="description")
    def explanation(self, config: AiConfig) -> str:
        return gettext(config.description) if config.description else ""

    def save_model(self, request: HttpRequest, obj: AiConfig, form: Any, change: bool) -> None:
        user = request.user if isinstance(request.user, User) else None
        set_config(obj.key, form.cleaned_data["value"], user=user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AiConfig | None = None) -> bool:
        return False


@admin.register(AiConfigRevision)
class AiConfigRevisionAdmin(admin.ModelAdmin[AiConfigRevision]):
    list_display = ("changed_at", "config", "old_value", "new_value", "changed_by")
    list_filter = ("config__category", "changed_at")
    list_select_related = ("config", "changed_by")
    search_fields = ("config__key", "old_value", "new_value", "changed_by__username")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AiConfigRevision | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AiConfigRevision | None = None) -> bool:
        return False
