from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class RbacApp(AppConfig):
    name = "apps.rbac"
    label = "rbac"
    verbose_name = _("Access")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.rbac.api import schema  # noqa: F401 -- registers itself
        from apps.rbac.seed import seed_roles

        post_migrate.connect(seed_roles, sender=self)
