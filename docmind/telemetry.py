"""Structured logs: one line an event, JSON or console, with the request's id and without secrets."""

from __future__ import annotations

import logging
import logging.config
from typing import Any, TypedDict

import structlog

SECRET_KEYS = frozenset({"password", "token", "api_key", "authorization", "secret", "cookie", "refresh", "access"})


class LogOptions(TypedDict):
    format: str
    level: str


def _hide_secrets(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for key in event:
        if key.lower() in SECRET_KEYS:
            event[key] = "***"
    return event


def configure_logging(options: LogOptions) -> None:
    """Django calls this as LOGGING_CONFIG; third-party `logging` records take the same road as structlog's."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(allow=None),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_secrets,
    ]
    renderer: structlog.typing.Processor
    if options["format"] == "json":
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "structured": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
            "root": {"handlers": ["stderr"], "level": options["level"]},
            "loggers": {
                "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
                "uvicorn": {"handlers": [], "level": "WARNING", "propagate": True},
                "uvicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
                "uvicorn.access": {"handlers": [], "level": "WARNING", "propagate": True},
                "django.utils.autoreload": {"level": "WARNING"},
                "httpx": {"level": "WARNING"},
                "httpx2": {"level": "WARNING"},
                "httpcore": {"level": "WARNING"},
                "openai": {"level": "WARNING"},
                "dashscope": {"level": "CRITICAL"},
                "jieba": {"level": "WARNING"},
                "pymilvus": {"level": "CRITICAL"},
            },
        }
    )


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger whose calls take an event name and key-value pairs."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return logger
