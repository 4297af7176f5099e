"""Who may see which knowledge base: the one place where an AccessScope is filled.

public: everyone with kb:read. restricted: the owner, grants to the user or one of the user's roles, and whoever holds
kb:manage. private: the owner alone. Managing asks for ownership, a manage grant, or kb:manage (not on private ones of
others). An API key narrows permissions and knowledge bases; it never widens them.
"""

from __future__ import annotations

from django.db.models import Q

from apps.kb.models import AccessGrant, KnowledgeBase
from apps.rbac.models import ApiKey, User
from apps.rbac.scope import AccessScope

EMPTY_KBS: frozenset[int] = frozenset()


def resolve_scope(user: User, key: ApiKey | None = None) -> AccessScope:
    """The caller's scope, from the database now (at most four queries)."""
    permissions = user.permission_codes()
    if key is not None:
        permissions &= frozenset(key.permission_codes)
    if "kb:read" not in permissions:
        return AccessScope(
            user_id=user.pk, permissions=permissions, readable_kb_ids=EMPTY_KBS, manageable_kb_ids=EMPTY_KBS
        )
    manages_all = "kb:manage" in permissions
    grants = dict.fromkeys((AccessGrant.Level.READ, AccessGrant.Level.MANAGE), EMPTY_KBS)
    rows = AccessGrant.objects.filter(Q(user=user) | Q(role__users=user)).values_list("knowledge_base_id", "level")
    for kb_id, level in rows:
        grants[AccessGrant.Level(level)] |= {kb_id}
    readable: set[int] = set()
    manageable: set[int] = set()
    for kb_id, owner_id, visibility in KnowledgeBase.objects.values_list("id", "owner_id", "visibility"):
        owns = owner_id == user.pk
        shared = visibility != KnowledgeBase.Visibility.PRIVATE
        may_manage = owns or (shared and (manages_all or kb_id in grants[AccessGrant.Level.MANAGE]))
        may_read = (
            may_manage
            or visibility == KnowledgeBase.Visibility.PUBLIC
            or (shared and kb_id in grants[AccessGrant.Level.READ])
        )
        if may_read:
            readable.add(kb_id)
        if may_manage:
            manageable.add(kb_id)
    if key is not None and key.knowledge_base_ids is not None:
        allowed = frozenset(key.knowledge_base_ids)
        readable &= allowed
        manageable &= allowed
    return AccessScope(
        user_id=user.pk,
        permissions=permissions,
        readable_kb_ids=frozenset(readable),
        manageable_kb_ids=frozenset(manageable),
    )
