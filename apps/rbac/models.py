"""Users, roles, permissions. `User` is AUTH_USER_MODEL; staff and superuser status derive from roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.contrib import auth
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.rbac.permissions import KB_ADMIN, SUPER_ADMIN


class Permission(models.Model):
    code = models.CharField(_("code"), max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=128)

    class Meta:
        db_table = "sys_permission"
        ordering = ("code",)
        verbose_name = _("permission")
        verbose_name_plural = _("permissions")

    def __str__(self) -> str:
        return self.code


class Role(models.Model):
    code = models.CharField(_("code"), max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=128)
    description = models.CharField(_("description"), max_length=500, blank=True)
    is_builtin = models.BooleanField(_("built in"), default=False, editable=False)
    permissions = models.ManyToManyField(
        Permission, through="RolePermission", related_name="roles", verbose_name=_("permissions")
    )

    class Meta:
        db_table = "sys_role"
        ordering = ("code",)
        verbose_name = _("role")
        verbose_name_plural = _("roles")

    def __str__(self) -> str:
        return self.name


class RolePermission(models.Model):
    role = models.ForeignKey(Role, on_delete=models.CASCADE)
    permission = models.ForeignKey(Permission, on_delete=models.CASCADE)

    class Meta:
        db_table = "sys_role_permission"
        constraints: ClassVar = [models.UniqueConstraint(fields=("role", "permission"), name="uniq_role_permission")]
        verbose_name = _("permission of a role")
        verbose_name_plural = _("permissions of roles")

    def __str__(self) -> str:
        return f"{self.role_id}:{self.permission_id}"


class UserManager(BaseUserManager["User"]):
    def create_user(
        self, username: str, password: str | None = None, *, roles: Iterable[str] = (), **fields: object
    ) -> User:
        """Create a user holding the roles named by code. Unknown codes raise Role.DoesNotExist."""
        user = self.model(username=self.model.normalize_username(username), **fields)
        user.set_password(password)
        user.save(using=self._db)
        for code in roles:
            UserRole.objects.create(user=user, role=Role.objects.get(code=code))
        return user

    def create_superuser(self, username: str, password: str | None = None, **fields: object) -> User:
        return self.create_user(username, password, roles=(SUPER_ADMIN,), **fields)


class User(AbstractBaseUser):
    username = models.CharField(_("user name"), max_length=150, unique=True, validators=[UnicodeUsernameValidator()])
    display_name = models.CharField(_("display name"), max_length=150, blank=True)
    email = models.EmailField(_("e-mail"), blank=True)
    is_active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    roles = models.ManyToManyField(Role, through="UserRole", related_name="users", verbose_name=_("roles"))

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        db_table = "sys_user"
        ordering = ("username",)
        verbose_name = _("user")
        verbose_name_plural = _("users")

    def __str__(self) -> str:
        return self.display_name or self.username

    def role_codes(self) -> frozenset[str]:
        """Codes of the user's roles, read from the database at each call."""
        return frozenset(self.roles.values_list("code", flat=True))

    def permission_codes(self) -> frozenset[str]:
        """Union of the permissions of all roles; empty for an inactive user."""
        if not self.is_active:
            return frozenset()
        return frozenset(Permission.objects.filter(roles__users=self).values_list("code", flat=True))

    @property
    def is_superuser(self) -> bool:
        return self.is_active and SUPER_ADMIN in self.role_codes()

    @property
    def is_staff(self) -> bool:
        return self.is_active and bool(self.role_codes() & {SUPER_ADMIN, KB_ADMIN})

    def has_perm(self, perm: str, obj: models.Model | None = None) -> bool:
        """Whether a backend grants it: a code such as `kb:read`, or Django's `app.action_model`."""
        return self.is_active and any(backend.has_perm(self, perm, obj) for backend in auth.get_backends())

    def has_perms(self, perm_list: Iterable[str], obj: models.Model | None = None) -> bool:
        return all(self.has_perm(perm, obj) for perm in perm_list)

    def has_module_perms(self, app_label: str) -> bool:
        asked = (getattr(backend, "has_module_perms", None) for backend in auth.get_backends())
        return self.is_active and any(ask(self, app_label) for ask in asked if ask is not None)


class UserRole(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    role = models.ForeignKey(Role, on_delete=models.CASCADE)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "sys_user_role"
        constraints: ClassVar = [models.UniqueConstraint(fields=("user", "role"), name="uniq_user_role")]
        verbose_name = _("role of a user")
        verbose_name_plural = _("roles of users")

    def __str__(self) -> str:
        return f"{self.user_id}:{self.role_id}"


class LoginSession(models.Model):
    """A token family of the API: access and refresh tokens name it, and it ends them all."""

    key = models.UUIDField(_("key"), unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_sessions")
    refresh_jti = models.CharField(_("current refresh token"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), auto_now=True)
    expires_at = models.DateTimeField(_("expires"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    ended_reason = models.CharField(_("reason"), max_length=64, blank=True)
    address = models.GenericIPAddressField(_("address"), null=True, blank=True)
    user_agent = models.CharField(_("client"), max_length=200, blank=True)

    class Meta:
        db_table = "sys_login_session"
        indexes: ClassVar = [models.Index(fields=("user", "ended_at"), name="idx_session_user")]
        verbose_name = _("sign-in session")
        verbose_name_plural = _("sign-in sessions")

    def __str__(self) -> str:
        return f"{self.user_id} {self.created_at:%Y-%m-%d %H:%M}"


class ApiKey(models.Model):
    """A personal key for the API and MCP; only its hash is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(_("prefix"), max_length=16, db_index=True)
    key_hash = models.CharField(_("hash"), max_length=64, unique=True)
    permission_codes = models.JSONField(_("permissions"), default=list)
    knowledge_base_ids = models.JSONField(_("knowledge bases"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        db_table = "sys_api_key"
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
