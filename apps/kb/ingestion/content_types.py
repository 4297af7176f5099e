"""What kind of passage a chunk is, told by cues in Chinese and English."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apps.kb.models import Chunk

_Kind = Chunk.ContentType

_WARNING = re.compile(
    r"警告|注意事项|注意[:：!！]|危险|严禁|禁止|切勿|不要在生产|务必|请勿|风险提示"
    r"|\b(?:warning|caution|danger|beware|important)\b\s*[:!：]|\[!(?:warning|caution|important)\]|:::\s*(?:warning|danger)"
    r"|\bdo not\b|\bnever (?:run|use|delete|expose|share|commit)\b|\bmust not\b",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"是指|指的是|定义为|的定义|所谓|简称|术语|即为"
    r"|\b(?:is|are) (?:defined as|called|known as)\b|\brefers? to\b|\bstands for\b|\bdefinition of\b|\bglossary\b",
    re.IGNORECASE,
)
_PROCEDURE = re.compile(
    r"步骤|第[一二三四五六七八九十\d]+步|首先.{0,200}(?:然后|接着|其次|最后)|操作流程|如何|安装方法|执行以下|运行以下|按照以下"
    r"|\bstep\s*\d|\bsteps\b|\bfollow these\b|\bhow to\b|\bfirst\b.{0,200}\bthen\b|\brun the following\b|\bprocedure\b",
    re.IGNORECASE | re.DOTALL,
)
_EXAMPLE = re.compile(
    r"示例|例如|比如|举例|样例|范例|\bfor example\b|\bfor instance\b|\be\.g\.|\bexamples?\b|\bsample\b|^\s*(?:```|~~~)",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED_LINE = re.compile(r"^[ \t]{0,6}\d{1,2}[.)、．][ \t]*\S", re.MULTILINE)
_PROCEDURE_LINES = 2


def classify(headings: Sequence[str], content: str) -> str:
    """The chunk's content type. The nearest heading counts as much as the text; a warning outranks all others."""
    text = f"{headings[-1]}\n{content}" if headings else content
    if _WARNING.search(text):
        return _Kind.WARNING.value
    if len(_NUMBERED_LINE.findall(content)) >= _PROCEDURE_LINES or _PROCEDURE.search(text):
        return _Kind.PROCEDURE.value
    if _DEFINITION.search(text):
        return _Kind.DEFINITION.value
    return _Kind.EXAMPLE.value if _EXAMPLE.search(text) else _Kind.GENERAL.value
