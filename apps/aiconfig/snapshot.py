"""Every hot-configuration key, declared once; a run takes one frozen `ConfigSnapshot` at its start.

The field's metadata holds the key's dotted name, category, bounds and description; the table, the admin form and
the API come from that. A row that is missing, or that no longer fits its declaration, counts as the default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from django.utils.translation import gettext_noop

from apps.aiconfig.declaration import KeyDeclaration, Value
from docmind.telemetry import get_logger

logger = get_logger(__name__)


def _key(
    name: str,
    default: Value,
    description: str,
    *,
    between: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    return field(
        default=default,
        metadata={"key": name, "description": description, "between": between, "choices": choices},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSnapshot:
    """All hot values at one moment. Attribute names are the dotted keys with underscores."""

    llm_chat_model: str = _key("llm.chat_model", "qwen-plus", gettext_noop("Model that writes the answers"))
    llm_small_model: str = _key("llm.small_model", "qwen-turbo", gettext_noop("Model for small decisions"))
    memory_extract_model: str = _key(
        "memory.extract_model", "qwen-flash", gettext_noop("Model that extracts memories and summaries")
    )
    llm_temperature: float = _key("llm.temperature", 0.3, gettext_noop("Sampling temperature"), between=(0, 2))
    llm_max_output_tokens: int = _key(
        "llm.max_output_tokens", 2048, gettext_noop("Longest answer, in tokens"), between=(64, 32_768)
    )
    llm_timeout_s: float = _key(
        "llm.timeout_s",
        60.0,
        gettext_noop("Longest wait for the next piece of a model's reply, in seconds"),
        between=(1, 600),
    )
    embedding_model: str = _key(
        "embedding.model", "text-embedding-v3", gettext_noop("Embedding model of a remote provider")
    )
    embedding_batch_size: int = _key(
        "embedding.batch_size", 10, gettext_noop("Texts embedded in one call"), between=(1, 256)
    )
    rerank_model: str = _key("rerank.model", "gte-rerank", gettext_noop("Rerank model of a remote provider"))
    rerank_top_k: int = _key("rerank.top_k", 8, gettext_noop("Passages kept after reranking"), between=(1, 50))
    rerank_candidates: int = _key(
        "rerank.candidates", 30, gettext_noop("Candidates given to the reranker"), between=(1, 200)
    )
    rerank_timeout_s: float = _key(
        "rerank.timeout_s", 5.0, gettext_noop("Longest wait for the reranker, in seconds"), between=(0.1, 60)
    )
    retrieval_vector_top_k: int = _key(
        "retrieval.vector_top_k", 50, gettext_noop("Hits taken from vector search"), between=(1, 500)
    )
    retrieval_bm25_candidates: int = _key(
        "retrieval.bm25_candidates", 400, gettext_noop("Candidates that full text hands to BM25"), between=(10, 5000)
    )
    bm25_k1: float = _key("bm25.k1", 1.2, gettext_noop("BM25 term saturation k1"), between=(0, 5))
    bm25_b: float = _key("bm25.b", 0.75, gettext_noop("BM25 length normalisation b"), between=(0, 1))
    rrf_k: int = _key("rrf.k", 60, gettext_noop("Rank fusion constant k"), between=(1, 1000))
    rrf_k_precise: int = _key(
        "rrf.k_precise", 40, gettext_noop("Rank fusion constant k for precise questions"), between=(1, 1000)
    )
    rrf_weight_bm25_precise: float = _key(
        "rrf.weight_bm25_precise", 0.7, gettext_noop("Weight of keyword search for precise questions"), between=(0, 1)
    )
    rrf_weight_vector_semantic: float = _key(
        "rrf.weight_vector_semantic",
        0.6,
        gettext_noop("Weight of vector search for semantic questions"),
        between=(0, 1),
    )
    hyde_enabled: bool = _key(
        "hyde.enabled", True, gettext_noop("Search with a hypothetical answer when a question is vague")
    )
    agent_observation_low_score_threshold: float = _key(
        "agent.observation.low_score_threshold",
        0.4,
        gettext_noop("Top score under which HyDE is tried"),
        between=(0, 1),
    )
    mmr_enabled: bool = _key("mmr.enabled", True, gettext_noop("Prefer passages that differ from each other"))
    mmr_lambda: float = _key("mmr.lambda", 0.7, gettext_noop("Relevance against diversity"), between=(0, 1))
    mmr_similarity: str = _key(
        "mmr.similarity", "cosine", gettext_noop("How likeness of passages is measured"), choices=("cosine", "jaccard")
    )
    compress_near_dup_jaccard: float = _key(
        "compress.near_dup_jaccard",
        0.85,
        gettext_noop("Likeness from which a passage counts as a repeat"),
        between=(0, 1),
    )
    compress_max_chunk_chars: int = _key(
        "compress.max_chunk_chars",
        800,
        gettext_noop("Longest passage in a prompt, in characters"),
        between=(100, 10_000),
    )
    rag_context_max_tokens: int = _key(
        "rag.context_max_tokens", 3000, gettext_noop("Tokens for passages in a prompt"), between=(200, 100_000)
    )
    grader_mode: str = _key(
        "grader.mode",
        "heuristic",
        gettext_noop("How unclear evidence is judged"),
        choices=("heuristic", "cross_encoder", "disabled"),
    )
    grader_high_threshold: float = _key(
        "grader.high_threshold", 0.7, gettext_noop("Top score that counts as strong"), between=(0, 1)
    )
    grader_low_threshold: float = _key(
        "grader.low_threshold", 0.35, gettext_noop("Top score that counts as weak"), between=(0, 1)
    )
    grader_coverage_threshold: float = _key(
        "grader.coverage_threshold", 0.5, gettext_noop("Term coverage that counts as strong"), between=(0, 1)
    )
    grader_web_fallback_on_ambiguous: bool = _key(
        "grader.web_fallback_on_ambiguous",
        True,
        gettext_noop("Search the web when an entity is missing from the evidence"),
    )
    retrieval_web_compensation_on_low: bool = _key(
        "retrieval.web_compensation_on_low", True, gettext_noop("Search the web when the evidence is weak")
    )
    retrieval_worker_timeout_s: float = _key(
        "retrieval.worker_timeout_s", 8.0, gettext_noop("Longest wait for one search, in seconds"), between=(0.1, 120)
    )
    agentic_enabled: bool = _key("agentic.enabled", True, gettext_noop("Let the model search step by step"))
    agentic_max_iterations: int = _key(
        "agentic.max_iterations", 4, gettext_noop("Rounds of the search loop"), between=(1, 10)
    )
    agentic_deadline_s: float = _key(
        "agentic.deadline_s", 45.0, gettext_noop("Longest search loop, in seconds"), between=(1, 600)
    )
    sandbox_enabled: bool = _key("sandbox.enabled", False, gettext_noop("Let the model run code in the sandbox"))
    prompt_budget_total_max_tokens: int = _key(
        "prompt.budget.total_max_tokens", 6000, gettext_noop("Tokens of a whole prompt"), between=(500, 200_000)
    )
    prompt_budget_aux_max_tokens: int = _key(
        "prompt.budget.aux_max_tokens",
        2500,
        gettext_noop("Tokens for computations, memory and history together"),
        between=(0, 100_000),
    )
    prompt_budget_computations_max_tokens: int = _key(
        "prompt.budget.computations_max_tokens", 1500, gettext_noop("Tokens for computations"), between=(0, 100_000)
    )
    prompt_budget_memory_max_tokens: int = _key(
        "prompt.budget.memory_max_tokens", 600, gettext_noop("Tokens for memory"), between=(0, 100_000)
    )
    prompt_budget_history_max_tokens: int = _key(
        "prompt.budget.history_max_tokens", 1000, gettext_noop("Tokens for history"), between=(0, 100_000)
    )
    prompt_history_rolling_summary: bool = _key(
        "prompt.history.rolling_summary", True, gettext_noop("Summarise the part of a conversation that no longer fits")
    )
    prompt_history_summary_max_tokens: int = _key(
        "prompt.history.summary_max_tokens", 300, gettext_noop("Tokens of that summary"), between=(50, 5000)
    )
    history_max_messages: int = _key(
        "history.max_messages", 6, gettext_noop("Earlier messages given to the model"), between=(0, 100)
    )
    history_max_chars: int = _key(
        "history.max_chars", 600, gettext_noop("Longest earlier message, in characters"), between=(50, 20_000)
    )
    memory_enabled: bool = _key("memory.enabled", True, gettext_noop("Remember facts about a user"))
    memory_max_per_user: int = _key(
        "memory.max_per_user", 200, gettext_noop("Memories kept for a user"), between=(1, 10_000)
    )
    memory_dedupe_cosine: float = _key(
        "memory.dedupe_cosine", 0.85, gettext_noop("Likeness of one and the same memory"), between=(0, 1)
    )
    memory_supersede_cosine: float = _key(
        "memory.supersede_cosine",
        0.75,
        gettext_noop("Likeness from which a newer memory replaces an older"),
        between=(0, 1),
    )
    memory_cache_ttl_s: int = _key(
        "memory.cache_ttl_s", 604_800, gettext_noop("Life of the memory cache, in seconds"), between=(1, 31_536_000)
    )
    cache_semantic_enabled: bool = _key(
        "cache.semantic.enabled", True, gettext_noop("Answer repeated questions from the cache")
    )
    cache_semantic_min_similarity: float = _key(
        "cache.semantic.min_similarity", 0.95, gettext_noop("Likeness of one and the same question"), between=(0, 1)
    )
    cache_semantic_min_frequency: int = _key(
        "cache.semantic.min_frequency",
        2,
        gettext_noop("Times a question is seen before its answer is kept"),
        between=(1, 100),
    )
    safety_emergency_words: str = _key(
        "safety.emergency_words",
        "自杀,轻生,kill myself,suicide",
        gettext_noop("Words that get a fixed reply, separated by commas"),
    )
    chunk_child_chars: int = _key(
        "chunk.child_chars", 400, gettext_noop("Size of a searched chunk, in characters"), between=(100, 2000)
    )
    chunk_overlap_chars: int = _key(
        "chunk.overlap_chars", 50, gettext_noop("Overlap of neighbouring chunks, in characters"), between=(0, 500)
    )
    chunk_parent_chars: int = _key(
        "chunk.parent_chars", 1500, gettext_noop("Size of a parent chunk, in characters"), between=(400, 10_000)
    )
    ingest_max_file_mb: int = _key("ingest.max_file_mb", 50, gettext_noop("Largest file, in MB"), between=(1, 1024))
    sse_disconnect_grace_s: float = _key(
        "sse.disconnect_grace_s",
        15.0,
        gettext_noop("How long an answer waits for a lost client, in seconds"),
        between=(0, 600),
    )
    confidence_high: float = _key(
        "confidence.high", 0.85, gettext_noop("Confidence that counts as high"), between=(0, 1)
    )
    confidence_medium: float = _key(
        "confidence.medium", 0.60, gettext_noop("Confidence that counts as medium"), between=(0, 1)
    )


def _declare(declared: dataclasses.Field[Any]) -> KeyDeclaration:
    between = declared.metadata["between"] or (None, None)
    key: str = declared.metadata["key"]
    return KeyDeclaration(
        key=key,
        field_name=declared.name,
        default=cast(Value, declared.default),
        category=key.split(".")[0],
        description=declared.metadata["description"],
        minimum=between[0],
        maximum=between[1],
        choices=declared.metadata["choices"],
    )


DECLARATIONS: Final[dict[str, KeyDeclaration]] = {
    declaration.key: declaration for declaration in map(_declare, dataclasses.fields(ConfigSnapshot))
}


def build_snapshot(stored: Mapping[str, str]) -> ConfigSnapshot:
    """A snapshot from stored texts by key; what does not parse is logged and counts as its default."""
    values: dict[str, Any] = {}
    for key, raw in stored.items():
        declaration = DECLARATIONS.get(key)
        if declaration is None:
            continue
        try:
            values[declaration.field_name] = declaration.parse(raw)
        except ValueError as error:
            logger.error("config_value_refused", key=key, reason=str(error), used=declaration.default)
    return ConfigSnapshot(**values)
