"""Understanding a question: what kind it is, how hard, how exact — by rules, in well under a millisecond.

1. Intent: the first pattern that matches, in the order of `_INTENTS`.
2. Complexity: SIMPLE; a multi-focus pattern or a second question raises it to MEDIUM, several of them to COMPLEX.
3. Specificity: PRECISE with an identifier or a quoted phrase, FUZZY with a word that asks for views, else NORMAL.
4. Ambiguous: a pronoun with hardly anything else to search for.

The search query is the question as it stands.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext as _

from apps.chat.pipeline.types import Complexity, Intent, QueryClassification
from apps.kb.retrieval.types import Specificity
from docmind.text import find_identifiers, significant_terms

_INTENTS: Final[tuple[tuple[Intent, re.Pattern[str]], ...]] = (
    (
        "COMPARISON",
        re.compile(
            r"对比|比较|区别|异同|差异|优缺点|(?<![\w.])vs\b|\bversus\b|\bcompar|\bdifferences?\b|\bdiffers?\b", re.I
        ),
    ),
    ("SUMMARY", re.compile(r"总结|概括|摘要|概述|讲了什么|主要内容|\bsummar|\boverview\b|\btl;?dr\b", re.I)),
    (
        "TROUBLESHOOTING",
        re.compile(
            r"报错|错误|失败|异常|无法|不能|不了|排查|故障|崩溃|超时|\berrors?\b|\bfail|\bexception|\bcrash|\bcannot\b|\bcan't\b"
            r"|\bnot work|\btroubleshoot|\btime(?:s|d)?[ -]?out\b",
            re.I,
        ),
    ),
    (
        "HOW_TO",
        re.compile(
            r"怎么|怎样|如何|步骤|方法|配置|安装|部署|\bhow (?:to|do|does|can|should)\b|\bsteps?\b"
            r"|\b(?:configure|install|deploy|set up)\b",
            re.I,
        ),
    ),
    (
        "DEFINITION",
        re.compile(r"什么是|是什么|含义|定义|什么意思|\bwhat(?: is| are|'s)\b|\bdefin|\bmean(?:s|ing)?\b", re.I),
    ),
    (
        "LOOKUP",
        re.compile(
            r"多少|哪个|哪些|哪里|在哪|几个|默认|是否|\bwhich\b|\bwhere\b|\bwhen\b|\bhow (?:many|much)\b|\bdefault\b",
            re.I,
        ),
    ),
)
_MULTI_FOCUS: Final = re.compile(
    r"对比|比较|区别|异同|差异|优缺点|分别|各自|以及.{0,20}(?:怎么|如何|是什么)|(?<![\w.])vs\.?(?![\w.])|\bversus\b|\bcompar\w+"
    r"|\bdifferences?\b|\brespectively\b|\bpros and cons\b|\bboth\b",
    re.I,
)
_QUESTION_MARK: Final = re.compile(r"[?？]+")
_LIST_ITEM: Final = re.compile(r"(?m)^\s*(?:\d+[.、)]|[-*])\s+\S")
_QUOTED: Final = re.compile(r"[“\"「『`][^”\"」』`\n]{2,}[”\"」』`]")
_FUZZY: Final = re.compile(
    r"优势|好处|思路|建议|看法|最佳实践|怎么样|为什么要|理念"
    r"|\badvantages?\b|\bbenefits?\b|\bbest practices?\b|\badvice\b"
    r"|\bthink of\b|\bideas?\b",
    re.I,
)
_TIME: Final = re.compile(
    r"最新|最近|近期|目前|现在|今天|昨天|本周|本月|今年|\b(?:latest|recent(?:ly)?|current(?:ly)?|today|yesterday|now)\b"
    r"|\bthis (?:week|month|year)\b",
    re.I,
)
_MEMORY: Final = re.compile(
    r"我(?:之前|上次|以前|说过|的偏好|的习惯|喜欢)|记得我"
    r"|\bmy (?:preferences?|habits?)\b|\bI (?:said|told you|prefer)\b",
    re.I,
)
_REMEMBER: Final = re.compile(r"(?:请?记住|remember(?: that)?)[，,:：\s]*(?P<what>[^\n]{2,300})", re.I)
_PRONOUN: Final = re.compile(r"它|这个|那个|这些|那些|上述|前面|\b(?:it|its|this|that|these|those|they|them)\b", re.I)
_MANY_FOCUSES: Final = 3
_AMBIGUOUS_TERMS: Final = 2


def understand(question: str) -> QueryClassification:
    """Classify a question. Total: every text has a classification."""
    text = " ".join(question.split())
    return QueryClassification(
        rewritten=text,
        intent=_intent(text),
        complexity=_complexity(question),
        specificity=_specificity(text),
        time_aware=bool(_TIME.search(text)),
        memory_aware=bool(_MEMORY.search(text)),
        is_ambiguous=bool(_PRONOUN.search(text)) and len(significant_terms(_PRONOUN.sub("", text))) <= _AMBIGUOUS_TERMS,
        scope="KNOWLEDGE_QUERY",
        scope_confidence=1.0,
        memory_write_hints=tuple(match["what"].strip() for match in _REMEMBER.finditer(question)),
        degraded=_("classified by rules, without a model"),
    )


def _intent(text: str) -> Intent:
    return next((intent for intent, pattern in _INTENTS if pattern.search(text)), "GENERAL")


def _complexity(question: str) -> Complexity:
    focuses = len({match.lower() for match in _MULTI_FOCUS.findall(question)})
    questions = max(len(_QUESTION_MARK.findall(question)), len(_LIST_ITEM.findall(question)))
    if focuses + max(0, questions - 1) >= _MANY_FOCUSES:
        return "COMPLEX"
    return "MEDIUM" if focuses or questions > 1 else "SIMPLE"


def _specificity(text: str) -> Specificity:
    if find_identifiers(text) or _QUOTED.search(text):
        return "PRECISE"
    return "FUZZY" if _FUZZY.search(text) else "NORMAL"
