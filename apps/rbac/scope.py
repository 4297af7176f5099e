"""What one caller may see: computed once per request and required by every read of knowledge-base content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessScope:
    """The knowledge bases a caller may read and manage, and the permission codes the caller holds.

    Built by `apps.kb.access.resolve_scope`; nothing else widens it.
    """

    user_id: int
    permissions: frozenset[str]
    readable_kb_ids: frozenset[int]
    manageable_kb_ids: frozenset[int]

    def narrow(self, kb_ids: Iterable[int] | None) -> AccessScope:
        """The same scope limited to `kb_ids`; None leaves it as it is. It can only shrink."""
        if kb_ids is None:
            return self
        wanted = frozenset(kb_ids)
        return replace(
            self,
            readable_kb_ids=self.readable_kb_ids & wanted,
            manageable_kb_ids=self.manageable_kb_ids & wanted,
        )

    def can_read(self, kb_id: int) -> bool:
        return kb_id in self.readable_kb_ids

    def can_manage(self, kb_id: int) -> bool:
        return kb_id in self.manageable_kb_ids

    @property
    def digest(self) -> str:
        """A short stable fingerprint of what is readable, for cache keys."""
        listing = ",".join(map(str, sorted(self.readable_kb_ids)))
        return hashlib.sha256(f"{self.user_id}:{listing}".encode()).hexdigest()[:16]
