"""Which knowledge bases a scope holds: owner, grants, roles, visibility, API key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.kb.access import resolve_scope
from apps.kb.models import AccessGrant, KnowledgeBase
from apps.rbac import tokens
from apps.rbac.models import Role
from apps.rbac.scope import AccessScope
from tests.factories import KnowledgeBaseFactory, UserFactory

Visibility = KnowledgeBase.Visibility


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("visibility", "who", "reads", "manages"),
    [
        (Visibility.PUBLIC, "owner", True, True),
        (Visibility.PUBLIC, "outsider", True, False),
        (Visibility.PUBLIC, "kb_admin", True, True),
        (Visibility.RESTRICTED, "owner", True, True),
        (Visibility.RESTRICTED, "outsider", False, False),
        (Visibility.RESTRICTED, "reader", True, False),
        (Visibility.RESTRICTED, "manager", True, True),
        (Visibility.RESTRICTED, "by_role", True, False),
        (Visibility.RESTRICTED, "kb_admin", True, True),
        (Visibility.PRIVATE, "owner", True, True),
        (Visibility.PRIVATE, "reader", False, False),
        (Visibility.PRIVATE, "kb_admin", False, False),
        (Visibility.PRIVATE, "super_admin", False, False),
        (Visibility.PUBLIC, "inactive", False, False),
    ],
)
def test_it_resolves_who_reads_and_who_manages(visibility: str, who: str, reads: bool, manages: bool) -> None:
    knowledge_base = KnowledgeBaseFactory(visibility=visibility)
    guild = Role.objects.create(code="GUILD", name="Guild")
    cast = {
        "owner": knowledge_base.owner,
        "outsider": UserFactory(),
        "reader": UserFactory(),
        "manager": UserFactory(),
        "by_role": UserFactory(roles=("USER", "GUILD")),
        "kb_admin": UserFactory(roles=("KB_ADMIN",)),
        "super_admin": UserFactory(roles=("SUPER_ADMIN",)),
        "inactive": UserFactory(is_active=False),
    }
    AccessGrant.objects.create(knowledge_base=knowledge_base, user=cast["reader"], level="read")
    AccessGrant.objects.create(knowledge_base=knowledge_base, user=cast["manager"], level="manage")
    AccessGrant.objects.create(knowledge_base=knowledge_base, role=guild, level="read")
    scope = resolve_scope(cast[who])
    assert scope.can_read(knowledge_base.pk) is reads
    assert scope.can_manage(knowledge_base.pk) is manages


@pytest.mark.django_db
def test_an_api_key_narrows_permissions_and_knowledge_bases() -> None:
    user = UserFactory(roles=("KB_ADMIN",))
    allowed, other = KnowledgeBaseFactory(), KnowledgeBaseFactory()
    key, _ = tokens.create_api_key(
        user, name="k", permission_codes=["kb:read", "config:write"], knowledge_base_ids=[allowed.pk, 999]
    )
    scope = resolve_scope(user, key)
    assert scope.readable_kb_ids == {allowed.pk}
    assert scope.permissions == {"kb:read"}
    assert not scope.can_read(other.pk)
    assert not scope.can_manage(allowed.pk)


@pytest.mark.django_db
def test_a_key_without_kb_read_reads_nothing() -> None:
    user = UserFactory()
    KnowledgeBaseFactory()
    key, _ = tokens.create_api_key(user, name="k", permission_codes=["chat:ask"])
    assert resolve_scope(user, key).readable_kb_ids == frozenset()


@given(st.frozensets(st.integers(1, 20)), st.frozensets(st.integers(1, 20)))
def test_narrowing_only_shrinks(readable: frozenset[int], wanted: frozenset[int]) -> None:
    scope = AccessScope(user_id=1, permissions=frozenset(), readable_kb_ids=readable, manageable_kb_ids=frozenset())
    narrowed = scope.narrow(wanted)
    assert narrowed.readable_kb_ids == readable & wanted
    assert (narrowed.digest == scope.digest) == (readable <= wanted)
