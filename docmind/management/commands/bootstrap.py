"""Everything between an empty database and the first sign-in; safe to run at every start."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.db import OperationalError

from docmind.bootstrap import ADMINISTRATOR, bootstrap


class Command(BaseCommand):
    help = "Migrates, seeds, makes the administrator where there is none, and brings the manual up to date."
    requires_system_checks: list[str] = []  # noqa: RUF012 (as Django declares it)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="report as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            call_command("migrate", interactive=False, verbosity=0)
            outcome = bootstrap()
        except OperationalError as error:
            self.stderr.write(f"The database cannot be used: {error}")
            sys.exit(1)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(outcome)))
            return
        if outcome.password:
            self.stdout.write(f"{ADMINISTRATOR} can sign in with the password {outcome.password}")
        self.stdout.write(f"Ready; {outcome.imported} pages of the manual queued.")
