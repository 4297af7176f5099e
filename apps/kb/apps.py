from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class KbApp(AppConfig):
    name = "apps.kb"
    label = "kb"
    verbose_name = _("Knowledge bases")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_q.signals import post_spawn

        from apps.kb.tasks import ensure_schedule, sweep_at_worker_start

        post_migrate.connect(ensure_schedule, sender=self)
        post_spawn.connect(sweep_at_worker_start)
