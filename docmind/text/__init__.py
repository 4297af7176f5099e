"""Text in and out of the pipeline: search terms, languages, sentences, token estimates, Markdown.

A leaf package: it knows neither the database nor the apps.
"""

from docmind.text.encoding import encode_term, encode_terms
from docmind.text.identifiers import find_identifiers
from docmind.text.language import Lang, detect_language
from docmind.text.render import render_markdown
from docmind.text.segmentation import segment, significant_terms, warm_up
from docmind.text.sentences import Sentence, split_sentences
from docmind.text.token_estimate import estimate_tokens

__all__ = [
    "Lang",
    "Sentence",
    "detect_language",
    "encode_term",
    "encode_terms",
    "estimate_tokens",
    "find_identifiers",
    "render_markdown",
    "segment",
    "significant_terms",
    "split_sentences",
    "warm_up",
]
