#!/bin/sh
# Makes the environment that the lock file describes, in .venv (or UV_PROJECT_ENVIRONMENT).
# Usage: environment.sh run|test. Needs Python >= 3.11 and nothing else; says in one line what is missing.
set -eu
unset VIRTUAL_ENV PYTHONHOME
cd "$(dirname "$0")/.."

UV_VERSION=0.13.9
# A company's network may end TLS itself: its certificate is in the system's store, not in uv's own
if [ -s /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"; fi
MODE=${1:-run}
VENV=${UV_PROJECT_ENVIRONMENT:-.venv}

fail() {
    echo "$1" >&2
    exit 2
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:+"$PYTHON"} "$VENV/bin/python" python3 python3.13 python3.12 python3.11 python; do
        if is_recent "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

python=$(find_python)

# uv: from PATH, else a pinned one in .uv
if uv --version >/dev/null 2>&1; then
    uv=uv
else
    [ -n "$python" ] || fail "Python 3.11 or newer is needed, and none was found; set PYTHON to where it is."
    uv=.uv/bin/uv
    if [ "$($uv --version 2>/dev/null | cut -d' ' -f2)" != "$UV_VERSION" ]; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "The system package python3-venv is missing: apt-get install python3-venv"
        rm -rf .uv
        "$python" -m venv .uv || fail "The system package python3-venv is missing: apt-get install python3-venv"
        .uv/bin/pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" ||
            fail "uv $UV_VERSION could not be installed; is the package index reachable?"
    fi
fi

# What is heavy or needs a compiler comes only where it is configured
set --
if [ -n "${DATABASE_URL:-}" ]; then
    set -- "$@" --extra mysql
    if ! "$VENV/bin/python" -c 'import MySQLdb' 2>/dev/null; then
        for tool in gcc pkg-config; do
            command -v $tool >/dev/null || fail "DATABASE_URL needs a driver that is compiled: apt-get install $tool"
        done
        pkg-config --exists libmariadb || pkg-config --exists mysqlclient ||
            fail "DATABASE_URL needs the client library: apt-get install libmariadb-dev"
    fi
fi
if [ -n "${REDIS_URL:-}" ] || [ "$MODE" = test ]; then set -- "$@" --extra redis; fi
if [ -n "${S3_BUCKET:-}" ]; then set -- "$@" --extra s3; fi
if [ "$MODE" = run ]; then set -- "$@" --no-dev; fi
if [ "${DOCMIND_TEST_SERVICES:-}" = 1 ]; then set -- "$@" --group services; fi
if [ -n "$python" ] && [ "$python" != "$VENV/bin/python" ]; then set -- "$@" --python "$python"; fi
if [ -x "$VENV/bin/python" ]; then set -- "$@" --quiet; fi

"$uv" sync --locked --inexact "$@" || fail "The environment could not be made; the lines above say why."
