from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class KbApp(AppConfig):
    name = "apps.kb"
    label = "kb"
    verbose_name = _("Knowledge bases")
    default_auto_field = "django.db.models.BigAutoField"
