"""The app's schedules, made or brought up to date after each migrate."""

from __future__ import annotations

from typing import Any

from django_q.models import Schedule


def seed_schedules(**kwargs: Any) -> None:
    Schedule.objects.update_or_create(
        name="chat: close lost answers",
        defaults={
            "func": "apps.chat.tasks.fail_lost_runs",
            "schedule_type": Schedule.MINUTES,
            "minutes": 1,
            "repeats": -1,
        },
    )
