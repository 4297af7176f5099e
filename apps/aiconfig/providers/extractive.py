from __future__ import annotations

from collections.abc import AsyncIterator

from apps.aiconfig.providers.types import ChatDelta, ChatRequest, StreamEnd, TextDelta


class ExtractiveChat:
    name = "none"
    is_generative = False

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        for passage in request.passages[:1]:
            yield TextDelta(text=f"{passage.text} [{passage.index}]")
        yield StreamEnd()
