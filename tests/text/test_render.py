from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.utils.safestring import SafeString
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docmind.text import render_markdown


def _reference(number: int) -> str:
    return f'<a class="citation-ref" href="#source-{number}" data-index="{number}">[{number}]</a>'


def test_it_renders_tables_strikethrough_and_lists() -> None:
    html = render_markdown("| a | b |\n|:-:|--:|\n| ~~x~~ | y |\n\n3. three\n")
    assert '<th class="align-center">a</th>' in html
    assert '<td class="align-right">y</td>' in html
    assert "<s>x</s>" in html
    assert '<ol start="3">' in html
    assert isinstance(html, SafeString)


def test_it_highlights_code_with_classes() -> None:
    html = render_markdown('```python\ndef f(a): return "<b>"\n```\n')
    assert '<code class="language-python"><span class="k">def</span>' in html
    assert "style=" not in html
    assert "<b>" not in html


def test_it_shows_code_in_an_unknown_language_as_it_is() -> None:
    assert render_markdown("```nosuch\n<x>\n```\n") == '<pre><code class="language-nosuch">&lt;x&gt;\n</code></pre>\n'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a [1][2]", f"a {_reference(1)}{_reference(2)}"),
        ("a [1,3]", f"a {_reference(1)}{_reference(3)}"),
        ("甲【2】", f"甲{_reference(2)}"),
        ("甲［２，３］", f"甲{_reference(2)}{_reference(3)}"),
        ("**a[1]**", f"<strong>a{_reference(1)}</strong>"),
        ("[1]: http://evil.example", f"{_reference(1)}: http://evil.example"),
        ("a [4] [0]", "a [4] [0]"),
        ("a [1,9]", f"a {_reference(1)}[9]"),
        ("`x[1]`", "<code>x[1]</code>"),
        ("\\[1\\]", "[1]"),
        ("[see [1]](http://a.b)", '<a href="http://a.b" rel="nofollow noopener">see [1]</a>'),
        ("[1](http://a.b)", '<a href="http://a.b" rel="nofollow noopener">1</a>'),
    ],
)
def test_it_links_citations_outside_code_and_links(source: str, expected: str) -> None:
    assert render_markdown(source, citation_count=3) == f"<p>{expected}</p>\n"


def test_it_leaves_citations_in_code_blocks_alone() -> None:
    assert "citation-ref" not in render_markdown("```bash\nls [1]\n```\n\n    a[1]\n", citation_count=3)


def test_it_links_no_citation_without_a_count() -> None:
    assert render_markdown("a [1]") == "<p>a [1]</p>\n"


@pytest.mark.parametrize("scheme", ["http://a.b/c", "https://a.b/c", "mailto:a@b.c"])
def test_it_keeps_links_to_the_web_and_to_mail(scheme: str) -> None:
    assert render_markdown(f"[x]({scheme})") == f'<p><a href="{scheme}" rel="nofollow noopener">x</a></p>\n'


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "/admin/", "#source-1", "//a.b", "ftp://a"],
)
def test_it_links_to_nothing_else(address: str) -> None:
    assert "<a" not in render_markdown(f"[x]({address}) <{address}>")


def test_it_drops_images_to_their_alternative_text() -> None:
    assert render_markdown('![a *b* <c>](http://a.b/i.png "t")') == "<p>a b &lt;c&gt;</p>\n"


def test_it_shows_raw_html_as_text() -> None:
    html = render_markdown('<script>alert(1)</script>\n\n<b onclick="x">y</b> <!-- z -->')
    assert "<script" not in html
    assert "<b" not in html
    assert "&lt;script&gt;" in html


class _Checker(HTMLParser):
    """Fails on an element or attribute that the page must never get from a model."""

    TAGS = frozenset(
        {"a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"}
        | {"span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
    )
    ATTRIBUTES = frozenset({"href", "title", "rel", "class", "data-index", "start"})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.TAGS
        for name, value in attrs:
            assert name in self.ATTRIBUTES
            if name == "href":
                assert re.match(r"https?://|mailto:|#source-[123]$", value or "", re.IGNORECASE)


_PIECES = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        [
            "<script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[1]",
            "【2】",
            "```",
            "`",
            "\n",
            "\n\n",
        ]
    ),
    st.sampled_from(
        ["| a |\n|-|\n", "![i](x)", "](", "<https://a.b>", '<a href="//x">', "&#106;avascript:", "    ", "> ", "- "]
    ),
)


@given(st.lists(_PIECES, max_size=15).map("".join))
@example("\ud800")
@settings(deadline=None)
def test_it_gives_harmless_html_for_any_source(source: str) -> None:
    checker = _Checker()
    checker.feed(render_markdown(source, citation_count=3))
    checker.close()
