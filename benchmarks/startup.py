"""Start-up, memory and time to first token: `make bench`, or `python -m benchmarks.startup --help`.

1. A start on an empty data folder (environment made, samples imported), and a start on the same folder again.
2. PSS of every process once the samples are indexed and nothing happens.
3. Time from a question to its first token through the API, over a model stand-in that answers at once, beside the time
   that the stand-in itself takes. What is between the two is DocMind's own: search, ranking, prompt, streaming.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.whole import PASSWORD, Whole
from tests.standins.openai import OpenAIStandIn

INDEXED_TIMEOUT_S = 600.0
SETTLE_S = 5.0
MODEL_KEY = "benchmark"
QUESTIONS = (
    "DocMind 怎么配置 MySQL？",
    "默认端口是多少？怎么修改？",
    "How do I configure Redis?",
    "Which file formats can be uploaded?",
    "忘记管理员密码怎么办？",
    "What does DOCMIND_DATA_DIR do?",
    "引用编号是什么意思？",
    "How do I use DocMind with an OpenAI-compatible model?",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asks", type=int, default=24, help="questions to time, at most 50 (they are throttled)")
    asks = min(50, parser.parse_args().asks)
    with tempfile.TemporaryDirectory() as folder, OpenAIStandIn() as model:
        environment = {
            "DOCMIND_CHAT_PROVIDER": "openai",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": MODEL_KEY,
        }
        with running(Path(folder), environment) as whole, httpx.Client(base_url=whole.address, timeout=60) as client:
            sign_in(client)
            _wait_until_indexed(client)
            stopped_s = whole.stop()
            _row("stop", f"{stopped_s:.1f} s")
            _row("start, warm", f"{whole.start():.1f} s")
            time.sleep(SETTLE_S)
            _report_memory(whole)
            _report_first_token(client, model, asks)


@contextmanager
def running(folder: Path, environment: dict[str, str]) -> Iterator[Whole]:
    whole = Whole(folder, environment)
    try:
        _row("start, empty data folder", f"{whole.start():.1f} s")
        yield whole
    finally:
        whole.stop()


def sign_in(client: httpx.Client) -> None:
    answer = client.post("/api/auth/token/", json={"username": "admin", "password": PASSWORD})
    answer.raise_for_status()
    client.headers["Authorization"] = f"Bearer {answer.json()['access']}"


def _wait_until_indexed(client: httpx.Client) -> None:
    began = time.monotonic()
    kb_id = client.get("/api/kb/knowledge-bases/").raise_for_status().json()["results"][0]["id"]
    while True:
        rows = client.get(f"/api/kb/knowledge-bases/{kb_id}/documents/").raise_for_status().json()["results"]
        if rows and all(row["status"] == "ready" for row in rows):
            break
        if time.monotonic() - began > INDEXED_TIMEOUT_S:
            raise RuntimeError(f"The samples were not indexed: {[row['status'] for row in rows]}")
        time.sleep(0.5)
    chunks = sum(row["chunk_count"] for row in rows)
    _row(f"samples indexed ({len(rows)} documents, {chunks} chunks)", f"{time.monotonic() - began:.1f} s")


def _report_memory(whole: Whole) -> None:
    rows = whole.memory()
    for name, pss_mb in rows:
        _row(f"PSS {name}", f"{pss_mb:.0f} MB")
    _row("PSS in all", f"{sum(pss_mb for _name, pss_mb in rows):.0f} MB")


def _report_first_token(client: httpx.Client, model: OpenAIStandIn, asks: int) -> None:
    with httpx.Client(base_url=model.base_url, timeout=60, headers={"Authorization": f"Bearer {MODEL_KEY}"}) as direct:
        direct_ms = _timed(asks, lambda question: _first_piece_ms(direct, question))
    api_ms = _timed(asks, lambda question: _first_token_ms(client, question))
    for name, times in (("stand-in alone", direct_ms), ("through the API", api_ms)):
        _row(f"first token, {name}", f"p50 {_percentile(times, 50):.1f} ms, p95 {_percentile(times, 95):.1f} ms")
    _row("ratio of the medians", f"{_percentile(api_ms, 50) / _percentile(direct_ms, 50):.1f}")


def _timed(asks: int, measure: Callable[[str], float]) -> list[float]:
    """The first question is warm-up and does not count."""
    return [measure(f"{QUESTIONS[number % len(QUESTIONS)]} #{number}") for number in range(asks + 1)][1:]


def _first_piece_ms(client: httpx.Client, question: str) -> float:
    began = time.perf_counter()
    body = {"model": "stand-in", "stream": True, "messages": [{"role": "user", "content": question}]}
    with client.stream("POST", "chat/completions", json=body) as stream:
        return _until(stream, lambda line: '"content": "' in line and '"content": ""' not in line, began)


def _first_token_ms(client: httpx.Client, question: str) -> float:
    began = time.perf_counter()
    with client.stream("POST", "/api/chat/ask/", json={"question": question}) as stream:
        stream.raise_for_status()
        return _until(stream, lambda line: line == "event: token", began)


def _until(stream: httpx.Response, is_first: Callable[[str], bool], began: float) -> float:
    """Milliseconds to the first line that counts; the rest is read too, so that answers do not overlap."""
    first_ms: float | None = None
    lines: list[str] = []
    for line in stream.iter_lines():
        lines.append(line)
        if first_ms is None and is_first(line):
            first_ms = (time.perf_counter() - began) * 1000
    if first_ms is None:
        raise RuntimeError("No token came:\n" + "\n".join(lines[-20:]))
    return first_ms


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _row(name: str, value: str) -> None:
    print(f"{name:<48} {value}", flush=True)


if __name__ == "__main__":
    main()
