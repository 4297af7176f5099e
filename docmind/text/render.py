"""The one way from Markdown, a model's above all, to the page: render, highlight, link citations, sanitize.

1. markdown-it-py with tables and strikethrough; raw HTML stays visible text; link definitions are off, so that a
   model's `[1]: …` line cannot turn citations into links; images give way to their alternative text.
2. Citations in text tokens, never in code or links, become links to the source cards.
3. Code with a known language is highlighted by Pygments with classes alone.
4. nh3 keeps only the elements, attributes and addresses listed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_HIGHLIGHTED_CHARS = 20_000

_CITATION = re.compile(r"[\[【［](\d{1,3}(?:\s?[,，、;；]\s?\d{1,3}){0,20})[\]】］]")
_NUMBER = re.compile(r"\d+")
_ADDRESS = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_SOURCE_ADDRESS = re.compile(r"#source-[1-9]\d{0,2}")
_CLASS_NAMES = re.compile(r"(?:citation-ref|language-[\w+#.-]{1,40}|align-(?:left|center|right)|[a-z][a-z0-9]{0,2})")
_ALIGNMENT = re.compile(r"text-align:(left|center|right)")

_BLOCKS = {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
_TAGS = _BLOCKS | _TABLES | {"a", "br", "code", "em", "s", "span", "strong"}
_ATTRIBUTES = {
    "a": {"href", "title", "rel", "class", "data-index"},
    "code": {"class"},
    "span": {"class"},
    "th": {"class"},
    "td": {"class"},
    "ol": {"start"},
}


def render_markdown(source: str, *, citation_count: int = 0) -> SafeString:
    """`source` as sanitized HTML.

    `[n]`, `[1,3]` and their full-width forms with 1 ≤ n ≤ `citation_count` become
    `<a class="citation-ref" href="#source-n" data-index="n">[n]</a>`; others stay text.
    """
    text = source.encode("utf-8", "replace").decode("utf-8")  # nh3 takes no lone surrogates
    rendered = _markdown().render(text, {"citation_count": citation_count})
    cleaned = nh3.clean(
        rendered,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
    )
    return mark_safe(cleaned)  # noqa: S308 - sanitized in the line above


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlight_code, "maxNesting": 20})
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["reference", "html_block", "html_inline"])
    markdown.validateLink = _is_allowed_address  # type: ignore[method-assign]
    markdown.core.ruler.after("inline", "citations", _link_citations)
    markdown.core.ruler.push("attributes", _set_attributes)
    markdown.add_render_rule("image", _render_image)
    markdown.add_render_rule("citation", _render_citation)
    return markdown


def _is_allowed_address(url: str) -> bool:
    return bool(_ADDRESS.match(url))


def _filter_attribute(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "class":
        return " ".join(name for name in value.split() if _CLASS_NAMES.fullmatch(name)) or None
    if attribute == "href":
        return value if _ADDRESS.match(value) or _SOURCE_ADDRESS.fullmatch(value) else None
    return value


def _highlight_code(code: str, language: str, _attributes: str) -> str:
    """Spans with Pygments' short classes, or an empty string: markdown-it then escapes the code itself."""
    lexer = _lexer(language) if language and len(code) <= MAX_HIGHLIGHTED_CHARS else None
    return highlight(code, lexer, HtmlFormatter(nowrap=True)) if lexer else ""


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


def _link_citations(state: StateCore) -> None:
    """Replaces citations in the text tokens outside links by citation tokens."""
    count = int(state.env.get("citation_count", 0))
    if count < 1:
        return
    for block in state.tokens:
        if block.type != "inline" or not block.children:
            continue
        children: list[Token] = []
        depth = 0
        for token in block.children:
            depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
            if token.type == "text" and not depth:
                children.extend(_split_at_citations(token, count))
            else:
                children.append(token)
        block.children = children


def _split_at_citations(token: Token, count: int) -> list[Token]:
    tokens: list[Token] = []
    reached = 0
    for match in _CITATION.finditer(token.content):
        numbers = [int(number) for number in _NUMBER.findall(match[1])]
        if not any(1 <= number <= count for number in numbers):
            continue
        tokens.append(_text(token, token.content[reached : match.start()]))
        for number in numbers:
            if 1 <= number <= count:
                tokens.append(Token("citation", "a", 0, meta={"index": number}, level=token.level))
            else:
                tokens.append(_text(token, f"[{number}]"))
        reached = match.end()
    return [*tokens, _text(token, token.content[reached:])] if tokens else [token]


def _text(like: Token, content: str) -> Token:
    return Token("text", "", 0, content=content, level=like.level)


def _set_attributes(state: StateCore) -> None:
    """Links get their rel; a column's alignment becomes a class, because the page's policy forbids inline styles."""
    for block in state.tokens:
        style = block.attrs.pop("style", "") if block.type in ("th_open", "td_open") else ""
        if alignment := _ALIGNMENT.fullmatch(str(style)):
            block.attrSet("class", f"align-{alignment[1]}")
        for token in block.children or ():
            if token.type == "link_open":
                token.attrSet("rel", "nofollow noopener")


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    return escapeHtml(renderer.renderInlineAsText(tokens[index].children, options, env))


def _render_citation(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    number: Any = tokens[index].meta["index"]
    return f'<a class="citation-ref" href="#source-{number}" data-index="{number}">[{number}]</a>'
