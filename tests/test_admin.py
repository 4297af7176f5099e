"""The admin shows every model of DocMind to an administrator, and nothing to others."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.rbac.models import User
from tests.factories import KnowledgeBaseFactory, UserFactory

MODELS = [
    model
    for app in ("rbac", "aiconfig", "kb", "memory", "chat")
    for model in apps.get_app_config(app).get_models()
    if not model._meta.auto_created
]


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_an_administrator_opens_the_list_of_every_model(client: Client, model: type[Model]) -> None:
    assert admin.site.is_registered(model)
    KnowledgeBaseFactory()
    client.force_login(UserFactory(roles=("SUPER_ADMIN",)))
    assert client.get(list_of(model)).status_code == 200
    assert client.get(list_of(model), {"q": "端口'\"%_"}).status_code == 200
    row = model._default_manager.first()
    if row is not None:
        change = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk])
        assert client.get(change).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_user_without_a_role_for_it_opens_none(client: Client, model: type[Model]) -> None:
    client.force_login(UserFactory())
    assert client.get(list_of(model)).status_code == 302


@pytest.mark.django_db
def test_a_knowledge_base_administrator_sees_knowledge_bases_but_not_people(client: Client) -> None:
    client.force_login(UserFactory(roles=("KB_ADMIN",)))
    assert client.get(reverse("admin:kb_document_changelist")).status_code == 200
    assert client.get(reverse("admin:rbac_user_changelist")).status_code == 403
    assert client.get(reverse("admin:chat_message_changelist")).status_code == 403


@pytest.mark.django_db
def test_a_user_made_without_a_role_gets_the_ordinary_one(client: Client) -> None:
    client.force_login(UserFactory(roles=("SUPER_ADMIN",)))
    form = {
        "username": "newcomer",
        "password1": "a new long passphrase",
        "password2": "a new long passphrase",
        "usable_password": "true",
        "userrole_set-TOTAL_FORMS": "0",
        "userrole_set-INITIAL_FORMS": "0",
    }
    assert client.post(reverse("admin:rbac_user_add"), form).status_code == 302
    assert User.objects.get(username="newcomer").role_codes() == {"USER"}


@pytest.mark.django_db
def test_a_new_password_ends_the_sessions_of_the_api(client: Client) -> None:
    from apps.rbac import tokens

    user = UserFactory()
    access = tokens.start_session(user).access
    client.force_login(UserFactory(roles=("SUPER_ADMIN",)))
    form = {"password1": "a new long passphrase", "password2": "a new long passphrase", "usable_password": "true"}
    client.post(reverse("admin:auth_user_password_change", args=[user.pk]), form)
    user.refresh_from_db()
    assert user.check_password("a new long passphrase")
    response = Client().get("/api/auth/me/", headers={"Authorization": f"Bearer {access}"})
    assert response.status_code == 401


@pytest.mark.django_db
def test_the_text_of_a_memory_stays_with_its_user(client: Client) -> None:
    from apps.memory.models import UserMemory

    memory = UserMemory.objects.create(user=UserFactory(), content="prefers tabs")
    client.force_login(UserFactory(roles=("SUPER_ADMIN",)))
    page = client.get(reverse("admin:memory_usermemory_change", args=[memory.pk]))
    assert page.status_code == 200
    assert "prefers tabs" not in page.content.decode()
