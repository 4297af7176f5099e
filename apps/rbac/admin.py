"""Django admin for users, roles, sessions and API keys."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.rbac import tokens
from apps.rbac.models import ApiKey, LoginSession, Permission, Role, RolePermission, User, UserRole
from apps.rbac.permissions import USER

admin.site.site_header = _("DocMind administration")
admin.site.site_title = "DocMind"
admin.site.index_title = _("Administration")


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Rows that only the program writes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UserCreationForm(AdminUserCreationForm[User]):
    class Meta:
        model = User
        fields = ("username",)


class UserEditForm(UserChangeForm[User]):
    class Meta:
        model = User
        fields = "__all__"


class UserRoleInline(admin.TabularInline[UserRole, User]):
    model = UserRole
    extra = 1
    autocomplete_fields = ("role",)


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User]):
    form = UserEditForm
    add_form = UserCreationForm
    inlines = (UserRoleInline,)
    list_display = ("username", "display_name", "email", "is_active", "role_names", "last_login")
    list_filter = ("is_active", "roles")
    search_fields = ("username", "display_name", "email")
    ordering = ("username",)
    filter_horizontal = ()
    readonly_fields = ("last_login", "created_at")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("Person"), {"fields": ("display_name", "email")}),
        (_("State"), {"fields": ("is_active", "last_login", "created_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("roles")

    @admin.display(description=_("roles"))
    def role_names(self, user: User) -> str:
        return ", ".join(role.name for role in user.roles.all())

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and ("password" in form.changed_data or not obj.is_active):
            tokens.end_all_sessions(obj, reason="changed by an administrator")

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A new user for whom no role was chosen gets the ordinary one: without any, nothing could be done."""
        super().save_related(request, form, formsets, change)
        if not change and not form.instance.roles.exists():
            UserRole.objects.create(user=form.instance, role=Role.objects.get(code=USER))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        response = super().user_change_password(request, id, form_url)
        user = self.get_object(request, id)
        if request.method == "POST" and response.status_code == 302 and isinstance(user, User):
            tokens.end_all_sessions(user, reason="password reset by an administrator")
        return response


class RolePermissionInline(admin.TabularInline[RolePermission, Role]):
    model = RolePermission
    extra = 1


@admin.register(Role)
class RoleAdmin(admin.ModelAdmin[Role]):
    list_display = ("code", "name", "is_builtin", "description")
    search_fields = ("code", "name")
    inlines = (RolePermissionInline,)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not (obj is not None and obj.is_builtin)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("code",) if obj is not None else ()


@admin.register(Permission)
class PermissionAdmin(ReadOnlyAdmin):
    list_display = ("code", "name")
    search_fields = ("code", "name")


@admin.register(RolePermission)
class RolePermissionAdmin(ReadOnlyAdmin):
    list_display = ("role", "permission")
    list_filter = ("role",)
    list_select_related = ("role", "permission")


@admin.register(UserRole)
class UserRoleAdmin(ReadOnlyAdmin):
    list_display = ("user", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "role")
    search_fields = ("user__username",)


@admin.register(LoginSession)
class LoginSessionAdmin(ReadOnlyAdmin):
    list_display = ("user", "created_at", "last_used_at", "expires_at", "ended_at", "ended_reason", "address")
    list_filter = ("ended_reason",)
    list_select_related = ("user",)
    search_fields = ("user__username", "address")
    exclude = ("key", "refresh_jti")
    actions = ("end",)

    @admin.action(description=_("End the chosen sessions"), permissions=["view"])
    def end(self, request: HttpRequest, queryset: Any) -> None:
        for key in queryset.filter(ended_at=None).values_list("key", flat=True):
            tokens.end_session(key, reason="ended by an administrator")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "prefix", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    exclude = ("key_hash",)
    actions = ("revoke",)

    @admin.action(description=_("Revoke the chosen keys"), permissions=["view"])
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
