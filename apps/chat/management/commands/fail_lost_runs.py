from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from apps.chat.tasks import fail_lost_runs


class Command(BaseCommand):
    help = "Marks answers whose process has died as failed; their text stays."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{fail_lost_runs()} answers closed")
