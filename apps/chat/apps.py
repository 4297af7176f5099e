from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ChatApp(AppConfig):
    name = "apps.chat"
    label = "chat"
    verbose_name = _("Conversations")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.chat.schedules import seed_schedules

        post_migrate.connect(seed_schedules, sender=self)
