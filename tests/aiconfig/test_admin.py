"""Hot configuration in Django admin."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse, reverse_lazy

from apps.aiconfig.models import AiConfig, AiConfigRevision
from apps.rbac.models import User
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

LIST_URL = reverse_lazy("admin:aiconfig_aiconfig_changelist")
INLINE = {"revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0"}


@pytest.fixture
def administrator(client: Client) -> User:
    user: User = UserFactory.create(roles=("SUPER_ADMIN",))
    client.force_login(user)
    return user


def change_url(key: str) -> str:
    return reverse("admin:aiconfig_aiconfig_change", args=[AiConfig.objects.get(key=key).pk])


def test_it_saves_a_change_with_its_author(client: Client, administrator: User) -> None:
    response = client.post(change_url("rerank.top_k"), {"value": "12", **INLINE})
    assert response.status_code == 302
    assert AiConfig.objects.get(key="rerank.top_k").value == "12"
    revision = AiConfigRevision.objects.get()
    assert (revision.old_value, revision.new_value, revision.changed_by) == ("8", "12", administrator)


@pytest.mark.parametrize(("key", "value"), [("rerank.top_k", "0"), ("rerank.top_k", "many"), ("grader.mode", "magic")])
def test_it_shows_why_a_value_is_refused(client: Client, administrator: User, key: str, value: str) -> None:
    response = client.post(change_url(key), {"value": value, **INLINE})
    assert response.status_code == 200
    assert response.context["adminform"].form.errors["value"]
    assert not AiConfigRevision.objects.exists()


def test_it_shows_bounds_and_choices(client: Client, administrator: User) -> None:
    assert "1 – 50" in client.get(change_url("rerank.top_k")).content.decode()
    assert 'value="cross_encoder"' in client.get(change_url("grader.mode")).content.decode()
    assert 'value="false"' in client.get(change_url("mmr.enabled")).content.decode()


def test_it_filters_by_category_change_and_words(client: Client, administrator: User) -> None:
    AiConfig.objects.filter(key="mmr.lambda").update(value="0.5")

    def keys(query: dict[str, str]) -> set[str]:
        return {row.key for row in client.get(str(LIST_URL), query).context["cl"].result_list}

    assert keys({"category": "mmr"}) == {"mmr.enabled", "mmr.lambda", "mmr.similarity"}
    assert keys({"changed": "yes"}) == {"mmr.lambda"}
    assert "mmr.lambda" not in keys({"changed": "no"})
    assert keys({"q": "diversity"}) == {"mmr.lambda"}


@pytest.mark.usefixtures("administrator")
def test_nobody_adds_or_deletes_rows(client: Client) -> None:
    row = AiConfig.objects.get(key="mmr.lambda")
    assert client.get(reverse("admin:aiconfig_aiconfig_add")).status_code == 403
    assert client.post(reverse("admin:aiconfig_aiconfig_delete", args=[row.pk])).status_code == 403


@pytest.mark.usefixtures("administrator")
def test_revisions_are_read_only(client: Client) -> None:
    client.post(change_url("rerank.top_k"), {"value": "12", **INLINE})
    revision = AiConfigRevision.objects.get()
    url = reverse("admin:aiconfig_aiconfigrevision_change", args=[revision.pk])
    assert client.get(reverse("admin:aiconfig_aiconfigrevision_changelist")).status_code == 200
    assert client.get(url).status_code == 200
    assert client.post(url, {"new_value": "99"}).status_code == 403
    assert client.get(reverse("admin:aiconfig_aiconfigrevision_add")).status_code == 403


def test_who_may_only_read_cannot_change(client: Client) -> None:
    client.force_login(UserFactory.create(roles=("KB_ADMIN",)))
    assert client.get(str(LIST_URL)).status_code == 200
    assert client.post(change_url("rerank.top_k"), {"value": "12", **INLINE}).status_code == 403
    assert not AiConfigRevision.objects.exists()
