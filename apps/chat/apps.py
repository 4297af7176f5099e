from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ChatApp(AppConfig):
    name = "apps.chat"
    label = "chat"
    verbose_name = _("Conversations")
    default_auto_field = "django.db.models.BigAutoField"
