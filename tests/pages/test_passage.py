"""A passage inside its rendered document: the right characters are marked, whatever markup stands around them."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.kb import passage as passage_module
from apps.kb.passage import clamp_passage, render_part

DOCUMENT = """# 配置

先读这一段。再读[安装](https://example.com/安装)一段。

把 `DATABASE_URL` 设成地址，**重新启动**即可。别的不用改。

| 变量 | 说明 |
|---|---|
| `REDIS_URL` | 缓存 |
| `MILVUS_URI` | 向量库 & 更多 |

```python
if debug:
    raise RuntimeError("no")
```

1. 停掉写入
2. 复制 <数据>
3. 重新启动
"""


def marked_text(html: str) -> str:
    return unescape("".join(re.findall(r"<mark>(.*?)</mark>", html, re.DOTALL)))


def show(phrase_from: str, phrase_to: str) -> str:
    start = DOCUMENT.index(phrase_from)
    end = DOCUMENT.index(phrase_to, start) + len(phrase_to)
    return str(render_part(DOCUMENT, passage=(start, end)).html)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("再读", "一段。", "再读安装一段。"),
        ("`DATABASE_URL`", "即可。", "DATABASE_URL 设成地址，重新启动即可。"),
        ("| `MILVUS_URI`", "更多 |", "MILVUS_URI向量库 & 更多"),
        ("    raise", '("no")', 'raise RuntimeError("no")'),
        ("2. 复制", "<数据>", "复制 <数据>"),
    ],
)
def test_it_marks_exactly_the_text_of_the_passage(first: str, last: str, expected: str) -> None:
    assert marked_text(show(first, last)).strip() == expected


def test_it_puts_the_touched_blocks_alone_into_the_section() -> None:
    html = show("再读", "即可。")
    section = re.search(r'<section class="passage".*?</section>', html, re.DOTALL)
    assert section is not None
    assert "先读" in section[0]
    assert "别的不用改" in section[0]
    assert "<h1>" not in section[0]
    assert "<table>" not in section[0]


def test_it_marks_nothing_inside_table_structure() -> None:
    html = show("| `REDIS_URL`", "更多 |")
    assert not re.search(r"<(?:table|thead|tbody|tr)>\s*<mark>", html)


def test_it_keeps_text_escaped() -> None:
    html = show("2. 复制", "<数据>")
    assert "&lt;数据&gt;" in html
    assert "<数据>" not in html


def test_it_keeps_hostile_markup_out_of_the_passage() -> None:
    source = "前面。\n\n<script>alert(1)</script> [点](javascript:alert(1)) <img src=x onerror=alert(1)>\n"
    html = str(render_part(source, passage=(5, len(source))).html)
    assert "<script" not in html
    assert "<img" not in html
    assert "href" not in html


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 3, (0, 3)), (1, 99, (1, 4)), (3, 3, None), (4, 2, None), (99, 120, None), (None, 3, None), (3, 5, (3, 4))],
)
def test_it_clamps_offsets_to_the_document(
    start: int | None, end: int | None, expected: tuple[int, int] | None
) -> None:
    assert clamp_passage("abcd\n", start, end) == expected


def test_it_shows_a_large_document_in_parts_that_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_module, "PART_CHARS", 100)
    monkeypatch.setattr(passage_module, "SEEK_CHARS", 60)
    source = "".join(f"## 第 {n} 节\n\n第 {n} 段正文在此，共一句话。\n\n" for n in range(40))
    parts = [render_part(source, number=1)]
    parts += [render_part(source, number=number) for number in range(2, parts[0].count + 1)]
    text = "".join(str(part.html) for part in parts)
    assert parts[0].count > 5
    assert all(text.count(f"第 {n} 段正文") == 1 for n in range(40))


def test_it_opens_the_part_that_holds_the_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_module, "PART_CHARS", 100)
    monkeypatch.setattr(passage_module, "SEEK_CHARS", 60)
    source = "".join(f"## 第 {n} 节\n\n第 {n} 段正文在此。\n\n" for n in range(40))
    start = source.index("第 33 段")
    part = render_part(source, passage=(start, start + len("第 33 段正文在此。")))
    assert part.number > 1
    assert marked_text(str(part.html)) == "第 33 段正文在此。"


@settings(max_examples=150, deadline=None)
@given(
    source=st.text(alphabet=st.sampled_from("ab文档。 \n#*`|-[](>1.&<"), max_size=120),
    offsets=st.tuples(st.integers(0, 130), st.integers(0, 130)),
)
def test_it_never_changes_what_the_document_says(source: str, offsets: tuple[int, int]) -> None:
    """Marks add no text, lose none, and leave every tag closed."""
    passage = clamp_passage(source, *offsets)
    html = str(render_part(source, passage=passage).html)
    assert html.count("<mark>") == html.count("</mark>")
    plain = re.sub(r"<[^>]+>", "", html)
    if passage is not None:
        apart = re.sub(r"</?mark>", "", html)
        assert re.sub(r"<[^>]+>", "", apart) == plain
    assert "<mark><" not in html
