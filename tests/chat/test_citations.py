from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.aiconfig.snapshot import ConfigSnapshot
from apps.chat.pipeline.citations import confidence_of, parse_citations, strip_citations


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("端口是 8080 号。[1]", (1,)),
        ("The port is 8080 [1][3].", (1, 3)),
        ("The port is 8080 [1,3].", (1, 3)),
        ("The port is 8080 [1, 3].", (1, 3)),
        ("端口是 8080 号[1，3]。", (1, 3)),
        ("The port is 8080 [1-3].", (1, 2, 3)),
        ("The port is 8080 [1–3].", (1, 2, 3)),
        ("端口是 8080 号［１］。", (1,)),
        ("端口是 8080 号【1】。", (1,)),
        ("端口是 8080 号【１、３】。", (1, 3)),
        ("It is [2] and again [2] and [1].", (2, 1)),
        ("The port is 8080[1].", (1,)),
    ],
)
def test_it_reads_every_form_that_models_write(text: str, indices: tuple[int, ...]) -> None:
    parsed = parse_citations(text, 3)
    assert parsed.indices == indices
    assert parsed.invalid_refs == 0
    assert parsed.coverage == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Use `args[1]` to read it from there.",
        "Use ``a `b` [1]`` to read it from there.",
        "```python\nprint(args[1])\n```",
        "~~~\nx [1]\n~~~",
        "  ```\n  x [1]\n",
        "See [chapter [1]](https://example.org/a) for all of it.",
        "See [the manual](https://example.org/[1]) for all of it.",
        "See [1](https://example.org/) for all of it.",
        "See https://example.org/?q=[1] for all of it.",
        "An escaped \\[1] is only text to read.",
        "In the year [2024] it was released to all.",
        "A list [a] is not a citation of it.",
    ],
)
def test_it_leaves_code_links_and_other_brackets_alone(text: str) -> None:
    parsed = parse_citations(text, 3)
    assert parsed.indices == ()
    assert parsed.invalid_refs == 0


def test_it_counts_references_to_passages_that_are_not_there() -> None:
    parsed = parse_citations("端口是 8080 号。[4] 主机是本机地址。[0][1]", 3)
    assert parsed.indices == (1,)
    assert parsed.invalid_refs == 2
    assert parsed.coverage == 0.5


def test_it_counts_a_backward_or_endless_range_as_one_that_is_not_there() -> None:
    assert parse_citations("端口是 8080 号。[3-1]", 3).invalid_refs == 1
    assert parse_citations("端口是 8080 号。[1-999]", 3).invalid_refs == 1


@pytest.mark.parametrize(
    ("text", "cited", "statements"),
    [
        ("端口是 8080 号。[1] 主机是本机地址。", 1, 2),
        ("## 端口的配置方法\n\n端口是 8080 号。[1]", 1, 1),
        ("步骤如下：\n\n1. 打开配置文件 [1]\n2. 修改端口号码 [2]\n3. 重新启动服务", 2, 3),
        ("| 名称 | 默认值 |\n|---|---|\n| 端口 | 8080 [1] |\n| 主机 | 本机地址 |", 1, 2),
        ("You need v2.3.9 of it, e.g. from the mirror. [1]", 1, 1),
        ("句子已经说完了。\n[1]\n\n没有引用的句子。", 1, 2),
        ("好的。", 0, 0),
        ("还有别的问题吗？", 0, 0),
        ("```\nlong code that says a lot of things\n```", 0, 0),
        ("", 0, 0),
    ],
)
def test_it_counts_statements_and_those_that_are_cited(text: str, cited: int, statements: int) -> None:
    parsed = parse_citations(text, 3)
    assert (parsed.cited_statements, parsed.statements) == (cited, statements)


def test_it_has_no_coverage_where_nothing_is_stated() -> None:
    assert parse_citations("好的。", 3).coverage is None


def test_it_strips_citations_but_not_code() -> None:
    text = "端口是 8080 [1][2]。 用 `a[1]` 读取【3】。"
    assert strip_citations(text) == "端口是 8080。 用 `a[1]` 读取。"


TEXT = st.text(
    alphabet=st.one_of(st.sampled_from("[]【】［］0123９１,，-–、()`~|#*:：。.?\n \\!"), st.characters(codec="utf-8")),
    max_size=200,
)


@settings(deadline=None)
@given(TEXT, st.integers(0, 12))
def test_its_counts_agree_with_each_other_for_any_text(text: str, sources: int) -> None:
    parsed = parse_citations(text, sources)
    assert 0 <= parsed.cited_statements <= parsed.statements
    assert all(1 <= index <= sources for index in parsed.indices)
    assert len(set(parsed.indices)) == len(parsed.indices)
    assert (parsed.coverage is None) == (parsed.statements == 0)


@settings(deadline=None)
@given(TEXT)
def test_what_is_cited_does_not_hang_on_how_many_sources_there_are(text: str) -> None:
    few, many = parse_citations(text, 2), parse_citations(text, 999)
    assert few.statements == many.statements
    assert few.indices == tuple(index for index in many.indices if index <= 2)


SENTENCES = st.lists(
    st.sampled_from(["端口默认是八零八零", "请修改配置文件中的取值", "服务需要重新启动才能生效"]),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(SENTENCES, st.data())
def test_coverage_is_the_share_of_cited_sentences(sentences: list[str], data: st.DataObject) -> None:
    marks = [data.draw(st.sampled_from(["", "[1]", "【2】", "[1,2]", "［１］", "[1-2]", "[9]"])) for _ in sentences]
    behind = data.draw(st.booleans())
    text = "".join(
        f"{sentence}。{mark}" if behind else f"{sentence}{mark}。"
        for sentence, mark in zip(sentences, marks, strict=True)
    )
    parsed = parse_citations(text, 2)
    assert parsed.statements == len(sentences)
    assert parsed.cited_statements == sum(mark not in {"", "[9]"} for mark in marks)
    assert parsed.invalid_refs == marks.count("[9]")


@settings(deadline=None)
@given(SENTENCES)
def test_stripping_undoes_citing(sentences: list[str]) -> None:
    plain = "。".join(sentences)
    assert strip_citations("[1][2]。".join(sentences) + "【3】") == plain


@pytest.mark.parametrize(
    ("coverage", "top_score", "score", "band"),
    [
        (1.0, 0.9, 0.9, "HIGH"),
        (1.0, 0.85, 0.85, "HIGH"),
        (0.8, 0.9, 0.72, "MEDIUM"),
        (0.5, 0.9, 0.45, "LOW"),
        (0.0, 1.0, 0.0, "LOW"),
        (None, 0.9, 0.9, "HIGH"),
        (1.0, 1.7, 1.0, "HIGH"),
    ],
)
def test_confidence_is_coverage_times_top_score(
    coverage: float | None, top_score: float, score: float, band: str
) -> None:
    confidence = confidence_of(coverage, top_score, ConfigSnapshot())
    assert confidence.score == pytest.approx(score)
    assert confidence.band == band


def test_the_bounds_of_the_bands_are_configured() -> None:
    assert confidence_of(1.0, 0.5, ConfigSnapshot(confidence_high=0.5)).band == "HIGH"
