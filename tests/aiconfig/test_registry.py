"""Which provider settings choose."""

from __future__ import annotations

import os

import pytest
from pytest_django import Settings

from apps.aiconfig.providers import registry
from apps.aiconfig.providers.local_embedding import LocalEmbedder
from apps.aiconfig.providers.registry import Providers, close_providers, current_providers, override_providers
from tests.aiconfig.conftest import API_KEY, ask, collect, text_of
from tests.fakes import HashingEmbedder, ScriptedChatModel
from tests.standins.dashscope import DashScopeStandIn


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    monkeypatch.setattr(registry._Held, "providers", None)
    monkeypatch.setattr(registry._Held, "override", None)
    settings.CHAT_PROVIDER, settings.EMBEDDING_PROVIDER = "none", "none"


def test_without_anything_it_answers_extractively(settings: Settings) -> None:
    providers = current_providers()
    assert providers.chat.name == "none"
    assert not providers.chat.is_generative
    assert providers.embedder is None


@pytest.mark.parametrize("name", ["dashscope", "openai"])
def test_settings_choose_the_chat_model(settings: Settings, name: str) -> None:
    settings.CHAT_PROVIDER = name
    assert current_providers().chat.name == name
    assert current_providers().chat.is_generative


def test_the_local_embedder_has_the_name_of_its_collections(settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "local"
    embedder = current_providers().embedder
    assert embedder is not None
    assert embedder.fingerprint == "local-multilingual-e5-small-384"
    assert embedder.dimension == 384


def test_an_embedder_that_cannot_be_loaded_is_left_out(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: LocalEmbedder) -> None:
        raise ImportError("no engine for this platform")

    settings.EMBEDDING_PROVIDER = "local"
    monkeypatch.setattr(LocalEmbedder, "__init__", broken)
    assert current_providers().embedder is None


def test_providers_are_built_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = current_providers()
    assert current_providers() is first
    monkeypatch.setattr(registry._Held, "pid", os.getpid() + 1)
    assert current_providers() is not first


def test_a_test_can_put_others_in_their_place() -> None:
    others = Providers(chat=ScriptedChatModel(["hi"]), embedder=HashingEmbedder())
    with override_providers(others):
        assert current_providers() is others
    assert current_providers() is not others


async def test_closing_gives_the_connections_back(settings: Settings) -> None:
    with DashScopeStandIn() as server:
        settings.CHAT_PROVIDER = "dashscope"
        settings.DASHSCOPE_API_KEY, settings.DASHSCOPE_HTTP_BASE_URL = API_KEY, server.base_url
        chat = current_providers().chat
        assert text_of(await collect(chat, ask())) == "默认端口是 8000。 [1]"
        await close_providers()
        assert current_providers().chat is not chat
        assert text_of(await collect(current_providers().chat, ask()))
        await close_providers()
