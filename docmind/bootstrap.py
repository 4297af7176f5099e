"""What a fresh database needs before somebody can sign in and ask: an administrator, and the manual to ask about.

Both may run at every start. The administrator is made where there is none. The manual's knowledge base is made together
with the administrator; later its documents are brought up to date, and a knowledge base that was deleted stays deleted.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import transaction

from apps.kb import services
from apps.kb.models import Document, KnowledgeBase
from apps.rbac.models import User
from apps.rbac.permissions import SUPER_ADMIN

ADMINISTRATOR = "admin"
MANUAL_NAME = "DocMind 手册 / DocMind manual"
MANUAL_DESCRIPTION = "DocMind 自己的手册（中文与英文）。 DocMind's own manual, in Chinese and English."
MANUAL_FOLDER = settings.BASE_DIR / "docs" / "manual"
PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    created: bool
    """Whether the administrator was made now."""
    password: str
    """The generated password; empty where none was."""
    imported: int
    """Documents of the manual that were queued."""


def bootstrap(manual: Path = MANUAL_FOLDER) -> Outcome:
    """Expects a migrated database. Raises PermanentError where a page of the manual is refused."""
    created, password = _ensure_administrator()
    knowledge_base = KnowledgeBase.objects.filter(name=MANUAL_NAME).order_by("pk").first()
    imported = _bring_up_to_date(knowledge_base, manual) if knowledge_base else 0
    return Outcome(created=created, password=password, imported=imported)


@transaction.atomic
def _ensure_administrator() -> tuple[bool, str]:
    """Whether one was made, and the password where it was generated. The manual's knowledge base comes with it."""
    if User.objects.filter(roles__code=SUPER_ADMIN).exists() or User.objects.filter(username=ADMINISTRATOR).exists():
        return False, ""
    generated = "" if settings.ADMIN_PASSWORD else secrets.token_urlsafe(PASSWORD_BYTES)
    administrator = User.objects.create_superuser(ADMINISTRATOR, settings.ADMIN_PASSWORD or generated)
    if not KnowledgeBase.objects.filter(name=MANUAL_NAME).exists():
        services.create_knowledge_base(administrator, name=MANUAL_NAME, description=MANUAL_DESCRIPTION)
    return True, generated


def _bring_up_to_date(knowledge_base: KnowledgeBase, folder: Path) -> int:
    """Queue the pages that are new or have changed, by content hash, Chinese ones first. Returns how many."""
    known = {
        document.source_path: document
        for document in Document.objects.filter(knowledge_base=knowledge_base).exclude(source_path="").order_by("pk")
    }
    queued = 0
    for page in sorted(folder.glob("*/*.md"), key=lambda page: (page.parent.name != "zh", page)):
        content = page.read_bytes()
        source_path = f"docs/manual/{page.parent.name}/{page.name}"
        name = f"{page.stem}.{page.parent.name}{page.suffix}"
        document = known.get(source_path)
        if document and document.sha256 == hashlib.sha256(content).hexdigest():
            continue
        if document:
            services.replace_document(document, name=name, file=ContentFile(content))
        else:
            services.upload_document(
                knowledge_base,
                user=knowledge_base.owner,
                name=name,
                file=ContentFile(content),
                source_path=source_path,
            )
        queued += 1
    return queued
