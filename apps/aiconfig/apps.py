from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AiConfigApp(AppConfig):
    name = "apps.aiconfig"
    label = "aiconfig"
    verbose_name = _("Models and configuration")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.aiconfig.services import seed_config

        post_migrate.connect(seed_config, sender=self)
