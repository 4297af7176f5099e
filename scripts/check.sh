#!/bin/sh
# Every check that needs no test run. All of them run, so that one look tells everything; fails if one fails.
set -u
cd "$(dirname "$0")/.."
# The settings make a secret key in the data folder; checks leave no trace in it.
export DOCMIND_SECRET_KEY="${DOCMIND_SECRET_KEY:-checks}"
uv=uv
uv --version >/dev/null 2>&1 || uv=.uv/bin/uv
failed=

check() {
    echo "== $*"
    "$@" || failed="$failed  $*
"
}

check ruff check .
check ruff format --check .
check mypy
check djlint --check --lint --quiet templates
check lint-imports --no-cache
check python manage.py check --fail-level WARNING
check python manage.py makemigrations --check --dry-run
check "$uv" lock --check

if [ -n "$failed" ]; then
    printf 'Failed:\n%s' "$failed" >&2
    exit 1
fi
echo "All checks passed."
