"""Which path a question takes, and with which searches. Rules only, well under a millisecond."""

from __future__ import annotations

from django.utils.translation import gettext as _

from apps.chat.pipeline.events import Routing
from apps.chat.pipeline.types import QueryClassification


def route(classification: QueryClassification) -> Routing:
    """The rule planner: documents always; exact keywords besides for an ambiguous or a precise question."""
    tools = ["doc_search"]
    reasons = [_("documents are always searched")]
    if classification.specificity == "PRECISE":
        tools.append("keyword_search")
        reasons.append(_("the question names something exactly"))
    elif classification.is_ambiguous:
        tools.append("keyword_search")
        reasons.append(_("the question leaves open what it refers to"))
    return Routing(mode="RULE_PLANNER", reason="; ".join(reasons), tools=tuple(tools))
