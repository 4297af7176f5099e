"""The pages in a real browser: the main job, and what happens when something goes wrong in the middle of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest
from playwright.sync_api import Browser, FilePayload, expect

from apps.aiconfig.providers.types import ChatDelta, ChatRequest, StreamEnd, TextDelta
from apps.chat import sse
from apps.chat.api import stream_views
from apps.chat.bus import RunBus
from apps.chat.models import Conversation, Message
from apps.kb.models import Document
from apps.rbac.models import User
from tests.factories import KnowledgeBaseFactory, UserFactory
from tests.pages.conftest import Site, visit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]

MANUAL = """# 运行手册

## 端口

默认端口是 8080，可以用 `server.port` 修改；修改之后要重新启动服务。

## 停机

发送 `server.shutdown` 指令之后，服务会先处理完手头的请求再退出。错误码 E1205 表示锁等待超时。
"""


class Gate:
    """Where the server waits until the test, in its own thread, lets it pass."""

    def __init__(self) -> None:
        self._is_open = False
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def open(self) -> None:
        self._is_open = True
        if self._waiting is not None:
            loop, event = self._waiting
            loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        event = asyncio.Event()
        self._waiting = (asyncio.get_running_loop(), event)
        if not self._is_open:
            await event.wait()


class HeldChat:
    """Writes its pieces; behind the first it waits at its gate, so that a test can act in the middle."""

    name = "held"
    is_generative = True

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = pieces
        self.gate = Gate()
        self.was_closed = False

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        try:
            for number, piece in enumerate(self.pieces):
                yield TextDelta(text=piece)
                if number == 0:
                    await self.gate.wait()
            yield StreamEnd(input_tokens=10, output_tokens=10)
        finally:
            self.was_closed = True


@pytest.fixture
def editor(site: Site) -> User:
    return UserFactory(username="editor", roles=("KB_ADMIN",))


def markdown(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "text/markdown", "buffer": content}


def with_manual(site: Site, editor: User) -> Document:
    """A published document, made the way an upload makes it."""
    from django.core.files.base import ContentFile

    from apps.kb import services

    knowledge_base = KnowledgeBaseFactory(name="手册", owner=editor)
    file = ContentFile(MANUAL.encode(), "manual.md")
    document = site.worker.submit(
        services.upload_document, knowledge_base, user=editor, name="manual.md", file=file
    ).result()
    site.ingest_all()
    document.refresh_from_db()
    assert document.status == Document.Status.READY
    return document


def test_the_main_job(site: Site, browser: Browser, editor: User) -> None:
    """Create a knowledge base, upload, watch it become ready, ask, follow a citation to its passage."""
    visitor = visit(browser, site, editor, path="/kb/")
    page = visitor.page
    page.get_by_role("button", name="新建知识库").click()
    page.get_by_label("名称").fill("运维")
    page.get_by_role("button", name="创建").click()
    page.wait_for_url(re.compile(r"/kb/\d+/$"))
    page.set_input_files("[data-files]", [markdown("manual.md", MANUAL.encode())])
    expect(page.locator(".document-row")).to_contain_text("等待中")
    site.ingest_all()
    expect(page.locator(".document-row")).to_contain_text("就绪")
    expect(page.locator("[data-counts]")).to_contain_text("1 个文档")

    page.get_by_role("link", name="提问").click()
    visitor.ask("默认端口是多少？")
    answer = page.locator(".turn--answer[data-status=done]")
    expect(answer).to_contain_text("8080")
    page.wait_for_url(re.compile(r"/chat/\d+/$"))
    expect(page.locator(".conversation--current")).to_contain_text("默认端口是多少")
    expect(answer).to_contain_text("没有配置模型")
    answer.locator(".trace summary").click()
    expect(answer.locator(".stage")).to_have_count(5)
    answer.locator("a.citation-ref").first.click()
    expect(answer.locator(".source--flash")).to_have_count(1)
    answer.locator(".source--flash a").click()
    page.wait_for_url(re.compile(r"/kb/documents/\d+/\?start="))
    expect(page.locator("mark", has_text="默认端口是 8080").first).to_be_in_viewport()
    page.go_back()
    expect(page.locator(".turn--answer")).to_contain_text("8080")
    assert visitor.problems == []


def listen_and_ingest(site: Site, browser: Browser, editor: User, *, blocked: str) -> list[str]:
    """Watch a document become ready with some addresses blocked; the lists of documents that were asked for."""
    knowledge_base = KnowledgeBaseFactory(owner=editor)
    visitor = visit(browser, site, editor)
    page = visitor.page
    if blocked:
        page.route(blocked, lambda route: route.abort())
    visitor.open(f"/kb/{knowledge_base.pk}/")
    page.set_input_files("[data-files]", [markdown("manual.md", MANUAL.encode())])
    expect(page.locator(".document-row")).to_contain_text("等待中")
    lists: list[str] = []
    page.on("request", lambda request: lists.append(request.url) if "/documents/?page=" in request.url else None)
    site.ingest_all()
    expect(page.locator(".document-row")).to_contain_text("就绪")
    return lists


def test_progress_comes_by_the_event_stream(site: Site, browser: Browser, editor: User) -> None:
    assert listen_and_ingest(site, browser, editor, blocked="") == []


def test_progress_is_asked_for_where_there_is_no_event_stream(site: Site, browser: Browser, editor: User) -> None:
    assert listen_and_ingest(site, browser, editor, blocked="**/events/") != []


def test_files_that_are_refused_say_why(site: Site, browser: Browser, editor: User) -> None:
    knowledge_base = KnowledgeBaseFactory(owner=editor)
    visitor = visit(browser, site, editor, path=f"/kb/{knowledge_base.pk}/", language="en-US")
    page = visitor.page
    picture = b"\x89PNG\r\n\x1a\n" + bytes(400)
    page.set_input_files(
        "[data-files]",
        [markdown("empty.md", b""), markdown("picture.md", picture), markdown("good.md", MANUAL.encode())],
    )
    expect(page.locator(".document-row")).to_contain_text("good.md")
    refused = page.locator(".upload--failed")
    expect(refused).to_have_count(2)
    expect(refused.first).to_contain_text("The file is empty.")
    expect(refused.last).to_contain_text("picture.md")
    refused.last.get_by_role("button", name="Dismiss").click()
    expect(refused).to_have_count(1)
    assert Document.objects.count() == 1


@pytest.mark.parametrize(("language", "reason"), [("en-US", "no text"), ("zh-CN", "没有")])
def test_a_file_that_fails_later_says_why_in_the_language_of_the_page(
    site: Site, browser: Browser, editor: User, language: str, reason: str
) -> None:
    knowledge_base = KnowledgeBaseFactory(owner=editor)
    page = visit(browser, site, editor, path=f"/kb/{knowledge_base.pk}/", language=language).page
    page.set_input_files("[data-files]", [markdown("rules.md", b"---\n\n***\n")])
    expect(page.locator(".document-row")).to_contain_text("rules.md")
    site.ingest_all()
    expect(page.locator(".document-row")).to_contain_text(reason)


def test_a_file_over_the_limit_is_not_sent(site: Site, browser: Browser, editor: User) -> None:
    knowledge_base = KnowledgeBaseFactory(owner=editor)
    visitor = visit(browser, site, editor, path=f"/kb/{knowledge_base.pk}/", language="en-US")
    page = visitor.page
    uploads: list[str] = []
    page.on("request", lambda request: uploads.append(request.url) if request.method == "POST" else None)
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(51 * 1024 * 1024)], "large.md"));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator(".upload--failed")).to_contain_text("larger than 50.0 MB")
    assert uploads == []


def test_stop_keeps_what_was_written(site: Site, browser: Browser, editor: User) -> None:
    with_manual(site, editor)
    chat = HeldChat(["默认端口是 8080[1]。", "再也不会出现。"])
    site.use(chat)
    visitor = visit(browser, site, editor)
    page = visitor.page
    visitor.ask("默认端口是多少？")
    expect(page.locator(".answer__text--live")).to_contain_text("8080")
    page.get_by_role("button", name="停止").click()
    answer = page.locator(".turn--answer[data-status=stopped]")
    expect(answer).to_contain_text("已停止")
    expect(answer.locator("a.citation-ref")).to_have_count(1)
    expect(page.get_by_role("button", name="发送")).to_be_visible()
    assert chat.was_closed
    assert Message.objects.get(role="assistant").status == Message.Status.STOPPED
    assert visitor.problems == []


def test_an_answer_goes_on_after_the_page_was_reloaded(site: Site, browser: Browser, editor: User) -> None:
    with_manual(site, editor)
    chat = HeldChat(["默认端口是 8080", "，可以修改[1]。"])
    site.use(chat)
    visitor = visit(browser, site, editor)
    page = visitor.page
    visitor.ask("默认端口是多少？")
    expect(page.locator(".answer__text--live")).to_contain_text("8080")
    page.wait_for_url(re.compile(r"/chat/\d+/$"))
    page.reload()
    expect(page.locator(".answer__text--live")).to_have_text("默认端口是 8080")
    chat.gate.open()
    expect(page.locator(".turn--answer[data-status=done]")).to_contain_text("默认端口是 8080，可以修改")
    assert Message.objects.filter(role="assistant").count() == 1


def test_a_broken_connection_is_taken_up_again(
    site: Site, browser: Browser, editor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks behind the first words; the page takes the stream up behind the last event it has."""
    whole = sse.stream_run
    begun: list[int] = []
    cut = Gate()

    async def stream_that_breaks_once(bus: RunBus, run_id: UUID, *, after: int = 0) -> AsyncIterator[bytes]:
        begun.append(after)
        is_first = len(begun) == 1
        async for frame in whole(bus, run_id, after=after):
            yield frame
            if is_first and b"event: token" in frame:
                await cut.wait()
                raise ConnectionResetError

    monkeypatch.setattr(stream_views, "stream_run", stream_that_breaks_once)
    with_manual(site, editor)
    chat = HeldChat(["默认端口是 8080", "，可以修改[1]。"])
    site.use(chat)
    visitor = visit(browser, site, editor)
    page = visitor.page
    page.evaluate(
        """() => {
          window.told = [];
          const observer = new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const node of addedNodes) window.told.push(node.textContent);
          });
          observer.observe(document.querySelector("[data-turns]"), { childList: true, subtree: true });
        }"""
    )
    visitor.ask("默认端口是多少？")
    expect(page.locator(".answer__text--live")).to_have_text("默认端口是 8080")
    cut.open()
    page.wait_for_function("window.told.some((text) => text.includes('正在重新连接'))")
    expect(page.locator(".answer__text--live")).to_have_text("默认端口是 8080")
    expect(page.locator("[data-notices] .notice")).to_have_count(0)
    chat.gate.open()
    expect(page.locator(".turn--answer[data-status=done]")).to_contain_text("默认端口是 8080，可以修改")
    assert begun[0] == 0
    assert begun[1] > 0


def test_a_refused_question_goes_back_to_where_it_was_written(site: Site, browser: Browser, editor: User) -> None:
    visitor = visit(browser, site, editor, language="en-US")
    page = visitor.page
    page.context.clear_cookies()
    visitor.ask("Is my question lost?")
    expect(page.locator("[data-problem]")).to_contain_text("signed out")
    expect(page.locator("#question")).to_have_value("Is my question lost?")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("[data-problem] a")).to_have_attribute("href", "/sign-in/?next=%2Fchat%2F")


def test_a_server_that_is_away_is_told_readably(site: Site, browser: Browser, editor: User) -> None:
    visitor = visit(browser, site, editor, language="en-US")
    page = visitor.page
    page.route("**/api/chat/ask/", lambda route: route.abort())
    visitor.ask("Hello?")
    expect(page.locator("[data-problem]")).to_contain_text("cannot be reached")
    expect(page.locator("#question")).to_have_value("Hello?")
    page.unroute("**/api/chat/ask/")
    page.route("**/api/chat/ask/", lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}, body="busy"))
    page.press("#question", "Enter")
    expect(page.locator("[data-problem]")).to_contain_text("in 7 seconds")


def test_a_model_that_fails_leaves_the_question_to_be_asked_again(site: Site, browser: Browser, editor: User) -> None:
    from docmind.errors import TransientError

    class Broken:
        name = "broken"
        is_generative = True

        async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
            raise TransientError("The model service is busy.")
            yield StreamEnd()

    with_manual(site, editor)
    site.use(Broken())
    visitor = visit(browser, site, editor, language="en-US")
    page = visitor.page
    visitor.ask("默认端口是多少？")
    expect(page.locator(".turn--answer .notice--bad")).to_contain_text("The model service is busy.")
    chat = HeldChat(["端口是 8080[1]。"])
    chat.gate.open()
    site.use(chat)
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".turn--answer[data-status=done]")).to_contain_text("8080")


def test_enter_of_an_input_method_sends_nothing(site: Site, browser: Browser, editor: User) -> None:
    visitor = visit(browser, site, editor)
    page = visitor.page
    page.fill("#question", "duan kou")
    page.locator("#question").dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True})
    expect(page.locator("#question")).to_have_value("duan kou")
    page.press("#question", "Shift+Enter")
    expect(page.locator("#question")).to_have_value("duan kou\n")
    page.fill("#question", "   ")
    page.press("#question", "Enter")
    page.fill("#question", "长" * 8001)
    page.press("#question", "Enter")
    expect(page.locator("[data-count]")).to_have_text("太长：8001 个字符，最多 8000 个")
    expect(page.locator(".turn")).to_have_count(0)
    assert Message.objects.count() == 0


def test_conversations_are_renamed_and_deleted(site: Site, browser: Browser, editor: User) -> None:
    kept = Conversation.objects.create(user=editor, title="Kept")
    gone = Conversation.objects.create(user=editor, title="Gone")
    visitor = visit(browser, site, editor, language="en-US", path=f"/chat/{kept.pk}/")
    page = visitor.page
    row = page.locator(f"[data-conversation='{kept.pk}']")
    row.get_by_role("button", name="Rename").click()
    row.get_by_role("textbox").fill("Better <b>name</b>")
    row.get_by_role("textbox").press("Enter")
    expect(row.locator("a")).to_have_text("Better <b>name</b>")
    other = page.locator(f"[data-conversation='{gone.pk}']")
    other.hover()
    other.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(other).to_have_count(1)
    other.hover()
    other.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(other).to_have_count(0)
    kept.refresh_from_db()
    assert kept.title == "Better <b>name</b>"
    assert not Conversation.objects.filter(pk=gone.pk).exists()
    assert visitor.problems == []


def test_documents_and_knowledge_bases_are_deleted_after_asking(site: Site, browser: Browser, editor: User) -> None:
    document = with_manual(site, editor)
    visitor = visit(browser, site, editor, language="en-US", path=f"/kb/{document.knowledge_base_id}/")
    page = visitor.page
    page.locator(".document-row").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("[data-empty]")).to_be_visible()
    page.get_by_role("button", name="Delete the knowledge base").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/kb/")
    expect(page.locator(".empty")).to_be_visible()
    assert visitor.problems == []


@pytest.mark.parametrize(("width", "scheme"), [(1200, "dark"), (390, "light"), (390, "dark")])
def test_no_page_is_wider_than_its_window(site: Site, browser: Browser, editor: User, width: int, scheme: str) -> None:
    document = with_manual(site, editor)
    visitor = visit(browser, site, editor, width=width, scheme=scheme)
    visitor.ask("E1205 是什么意思？")
    expect(visitor.page.locator(".turn--answer[data-status=done]")).to_contain_text("E1205")
    paths = [
        visitor.page.url.removeprefix(site.address),
        "/chat/",
        "/kb/",
        f"/kb/{document.knowledge_base_id}/",
        f"/kb/documents/{document.pk}/?start=10&end=60",
    ]
    for path in paths:
        visitor.open(path)
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert visitor.problems == []


def test_the_list_of_conversations_opens_on_a_phone(site: Site, browser: Browser, editor: User) -> None:
    Conversation.objects.create(user=editor, title="旧对话")
    page = visit(browser, site, editor, width=390).page
    expect(page.get_by_role("link", name="旧对话")).not_to_be_in_viewport()
    page.locator("[data-open-rail]").click()
    expect(page.get_by_role("link", name="旧对话")).to_be_in_viewport()
    page.locator("[data-close-rail]").click()
    expect(page.get_by_role("link", name="旧对话")).not_to_be_in_viewport()


def test_the_theme_and_the_language_are_switched(site: Site, browser: Browser, editor: User) -> None:
    visitor = visit(browser, site, editor)
    page = visitor.page
    page.locator(".menu summary").click()
    page.get_by_role("button", name="深色").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator(".menu summary").click()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("navigation").get_by_role("link", name="Knowledge bases")).to_be_visible()
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/")
    assert visitor.problems == []
