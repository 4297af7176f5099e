"""Django settings. All environment variables of DocMind are read here, through `docmind.env`, and nowhere else."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from docmind import env

django_stubs_ext.monkeypatch()  # lets Django's generic classes take type arguments at run time

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.path("DOCMIND_DATA_DIR", BASE_DIR / "data")
PORT = env.integer("DOCMIND_PORT", 8000, minimum=1, maximum=65535)
HOST = env.text("DOCMIND_HOST", "127.0.0.1")
DEBUG = env.boolean("DOCMIND_DEBUG", False)
ADMIN_PASSWORD = env.text("DOCMIND_ADMIN_PASSWORD")


def _secret_key() -> str:
    """DOCMIND_SECRET_KEY, else a key made once and kept in the data folder, readable by its owner alone."""
    if key := env.text("DOCMIND_SECRET_KEY"):
        return key
    file = DATA_DIR / "secret_key"
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ImproperlyConfigured(f"The data folder cannot be read: {error.strerror}: {error.filename}") from None
    try:
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600, exist_ok=True)
        file.write_text(secrets.token_urlsafe(64), encoding="ascii")
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data folder {DATA_DIR} cannot be written ({error.strerror}). "
            "Set DOCMIND_DATA_DIR to a folder that can, or set DOCMIND_SECRET_KEY."
        ) from None
    return file.read_text(encoding="ascii")


SECRET_KEY = _secret_key()

ALLOWED_HOSTS = env.words("DOCMIND_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
CSRF_TRUSTED_ORIGINS = env.words("DOCMIND_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_q",
    "django_eventstream",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "docmind",
    "apps.rbac",
    "apps.aiconfig",
    "apps.kb",
    "apps.memory",
    "apps.chat",
]

MIDDLEWARE = [
    "docmind.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "docmind.urls"
ASGI_APPLICATION = "docmind.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Relational database ---------------------------------------------------------------------------------------------

DATABASE_URL = env.text("DATABASE_URL")


def _database() -> dict[str, Any]:
    if not DATABASE_URL:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(DATA_DIR / "docmind.sqlite3"),
            "CONN_MAX_AGE": 60,
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000;",
            },
            # A file, so that the pipeline's threads see what a test has written.
            "TEST": {"NAME": str(DATA_DIR / "test.sqlite3")},
        }
    try:
        config = dict(dj_database_url.parse(DATABASE_URL))
    except ValueError:
        config = {"ENGINE": ""}
    if config["ENGINE"] != "django.db.backends.mysql":
        raise ImproperlyConfigured(
            "DATABASE_URL must be of the form mysql://user:password@host:port/database; leave it empty for SQLite."
        )
    config["CONN_MAX_AGE"] = 60
    config["CONN_HEALTH_CHECKS"] = True
    config["OPTIONS"] = {
        **config.get("OPTIONS", {}),
        "charset": "utf8mb4",
        "isolation_level": "read committed",
        "connect_timeout": 5,
    }
    config["TEST"] = {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_unicode_ci"}
    return config


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Redis: cache, event streams, queue broker -----------------------------------------------------------------------

REDIS_URL = env.text("REDIS_URL")

CACHES: dict[str, dict[str, Any]] = {
    "default": (
        {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": REDIS_URL,
            "KEY_PREFIX": "docmind",
            "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 2, "SOCKET_TIMEOUT": 2, "IGNORE_EXCEPTIONS": True},
        }
        if REDIS_URL
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "docmind"}
    )
}
DJANGO_REDIS_LOG_IGNORED_EXCEPTIONS = True

EVENTSTREAM_CHANNELMANAGER_CLASS = "apps.kb.progress.DocumentChannels"

WORKERS = env.integer("DOCMIND_WORKERS", 1, minimum=1, maximum=64)

Q_CLUSTER: dict[str, Any] = {
    "name": "docmind",
    "workers": WORKERS,
    "timeout": 300,
    "retry": 360,
    "ack_failures": True,
    "max_attempts": 3,
    "save_limit": 200,
    "catch_up": False,
    "poll": 0.5,
    "queue_limit": 8,
    "label": _("Tasks"),
}
if REDIS_URL:
    Q_CLUSTER["redis"] = REDIS_URL
else:
    Q_CLUSTER["orm"] = "default"

# --- Vector store ----------------------------------------------------------------------------------------------------

MILVUS_URI = env.text("MILVUS_URI")
"""Empty in the embedded default: the supervisor starts Milvus Lite on MILVUS_LITE_PORT."""
MILVUS_LITE_PORT = env.integer("DOCMIND_MILVUS_LITE_PORT", PORT + 1, minimum=1, maximum=65535)
VECTOR_URI = MILVUS_URI or f"http://127.0.0.1:{MILVUS_LITE_PORT}"
MILVUS_TOKEN = env.text("MILVUS_TOKEN")
VECTOR_NAMESPACE = env.text("DOCMIND_VECTOR_NAMESPACE", "docmind")

# --- Originals -------------------------------------------------------------------------------------------------------

S3_BUCKET = env.text("S3_BUCKET")
MEDIA_ROOT = DATA_DIR / "files"
STORAGES: dict[str, dict[str, Any]] = {
    "default": (
        {
            "BACKEND": "storages.backends.s3.S3Storage",
            "OPTIONS": {
                "bucket_name": S3_BUCKET,
                "endpoint_url": env.text("S3_ENDPOINT_URL") or None,
                "access_key": env.text("S3_ACCESS_KEY") or None,
                "secret_key": env.text("S3_SECRET_KEY") or None,
                "region_name": env.text("S3_REGION") or None,
                "default_acl": None,
                "file_overwrite": False,
            },
        }
        if S3_BUCKET
        else {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(MEDIA_ROOT)}}
    ),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
FILE_UPLOAD_TEMP_DIR = None
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000

# --- Models ----------------------------------------------------------------------------------------------------------

DASHSCOPE_API_KEY = env.text("DASHSCOPE_API_KEY")
DASHSCOPE_HTTP_BASE_URL = env.text("DASHSCOPE_HTTP_BASE_URL")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")


def _default_chat_provider() -> str:
    if DASHSCOPE_API_KEY:
        return "dashscope"
    return "openai" if OPENAI_BASE_URL or OPENAI_API_KEY else "none"


CHAT_PROVIDER = env.choice("DOCMIND_CHAT_PROVIDER", _default_chat_provider(), among=("none", "dashscope", "openai"))
EMBEDDING_PROVIDER = env.choice("DOCMIND_EMBEDDING_PROVIDER", "local", among=("local", "none"))

# --- People and access -----------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "rbac.User"
AUTHENTICATION_BACKENDS = ["apps.rbac.backends.RoleBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.BCryptSHA256PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 8}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "sign-in"
HTTPS = env.boolean("DOCMIND_HTTPS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
X_FRAME_OPTIONS = "DENY"

# --- API -------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.rbac.api.authentication.TokenAuthentication",
        "apps.rbac.api.authentication.PageSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "rest_framework.parsers.JSONParser",
        "rest_framework.parsers.MultiPartParser",
        "rest_framework.parsers.FormParser",
    ],
    "DEFAULT_PAGINATION_CLASS": "docmind.api.PageNumberPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "rest_framework.filters.OrderingFilter",
    ],
    "EXCEPTION_HANDLER": "docmind.api.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.ScopedRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"sign-in": "60/min", "ask": "600/min", "upload": "1200/min"},
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "DocMind",
    "DESCRIPTION": "Answers from your own technical documents, every sentence pinned to the passage it rests on.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "apps.chat.api.schema.add_stream_endpoints",
    ],
}
JWT_ACCESS_HOURS = 24
JWT_REFRESH_DAYS = 7
SIMPLE_JWT: dict[str, Any] = {
    "ACCESS_TOKEN_LIFETIME": timedelta(hours=JWT_ACCESS_HOURS),
    "REFRESH_TOKEN_LIFETIME": timedelta(days=JWT_REFRESH_DAYS),
    "ALGORITHM": "HS256",
    "SIGNING_KEY": SECRET_KEY,
    "USER_ID_CLAIM": "user_id",
    "CHECK_REVOKE_TOKEN": False,
}

# --- Language and static files ---------------------------------------------------------------------------------------

LANGUAGE_CODE = "zh-hans"
LANGUAGES = [("zh-hans", _("Chinese")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.text("DOCMIND_TIME_ZONE", "Asia/Shanghai")
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]

# --- Logs ------------------------------------------------------------------------------------------------------------

LOG_FORMAT = env.choice("DOCMIND_LOG_FORMAT", "console", among=("console", "json"))
LOG_LEVEL = env.choice("DOCMIND_LOG_LEVEL", "info", among=("debug", "info", "warning", "error")).upper()
LOGGING_CONFIG = "docmind.telemetry.configure_logging"
LOGGING = {"format": LOG_FORMAT, "level": LOG_LEVEL}
