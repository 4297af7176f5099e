"""Rows for tests."""

from __future__ import annotations

import factory

from apps.kb.models import KnowledgeBase
from apps.rbac.models import Role, User, UserRole
from apps.rbac.permissions import USER

PASSWORD = "correct horse battery"


class UserFactory(factory.django.DjangoModelFactory[User]):  # type: ignore[misc]
    """A user holding the roles given by code (`roles=("KB_ADMIN",)`); USER when none are."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"user{n}")
    password = factory.django.Password(PASSWORD)

    @factory.post_generation  # type: ignore[untyped-decorator]
    def roles(self: User, create: bool, extracted: tuple[str, ...] | None) -> None:
        for code in (USER,) if extracted is None else extracted:
            UserRole.objects.create(user=self, role=Role.objects.get(code=code))


class KnowledgeBaseFactory(factory.django.DjangoModelFactory[KnowledgeBase]):  # type: ignore[misc]
    class Meta:
        model = KnowledgeBase

    name = factory.Sequence(lambda n: f"Knowledge base {n}")
    owner = factory.SubFactory(UserFactory, roles=("KB_ADMIN",))
