from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmind.text import detect_language


@pytest.mark.parametrize(
    "text",
    [
        "如何配置数据库？",
        "使用 docker compose up -d 启动 MySQL、Redis 与 Milvus 服务",
        "在 `application.yml` 中设置 `server.shutdown=graceful`",
        "設定資料庫連線",
        "# 部署\n\n```bash\ndocker run --name some-long-name --env FOO=bar image:latest with many english words\n```\n",
        "请参考书中关于「サーバー」一词的长篇讨论，以及后面对数据库与分布式系统的说明",
    ],
)
def test_it_takes_technical_chinese_for_chinese(text: str) -> None:
    assert detect_language(text) == "zh"


@pytest.mark.parametrize(
    "text",
    [
        "How do I configure the database?",
        "server.shutdown",
        "The name 微服务 is the Chinese word for microservices, which are small services that are deployed alone.",
        "```python\nprint('hello')\n```",
    ],
)
def test_it_takes_latin_script_for_english(text: str) -> None:
    assert detect_language(text) == "en"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "3306",
        "サーバーを起動する方法",
        "東京都の天気",
        "서버를 설정하는 방법",
        "Как настроить базу данных?",
        "كيف",
    ],
)
def test_it_takes_everything_else_for_other(text: str) -> None:
    assert detect_language(text) == "other"


@given(st.text())
@settings(deadline=None)
def test_it_always_gives_one_of_three(text: str) -> None:
    assert detect_language(text) in ("zh", "en", "other")


@given(st.text("数据库连接池端口", min_size=1), st.text("0123456789 ，。!?\n"))
@settings(deadline=None)
def test_it_ignores_digits_and_punctuation(han: str, noise: str) -> None:
    assert detect_language(noise + han + noise) == "zh"
