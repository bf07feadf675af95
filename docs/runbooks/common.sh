# What the runbooks share: `. "$(dirname "$0")/common.sh"`.
# shellcheck shell=bash
set -euo pipefail

PRECISE=${PRECISE:-precise}
evidence=${EVIDENCE:-$(mktemp -d "/tmp/precise-$(basename "$0" .sh).XXXXXX")}
mkdir -p "$evidence"

# Records for 10 seconds, unless the arguments say otherwise, into NAME.parquet; what `record` says of it is kept as well.
record() { # NAME OPTION…
	"$PRECISE" record --quiet -o "$evidence/$1.parquet" "${@:2}" >"$evidence/$1.record.txt"
}

# Shows a view of a capture, and keeps it.
show() { # VIEW NAME OPTION…
	printf '\n$ precise %s -i %s\n' "$1${*:3}" "$2.parquet"
	"$PRECISE" "$1" -i "$evidence/$2.parquet" "${@:3}" | tee "$evidence/$2.$1.txt"
}

# Findings, and where it all is.
conclude() { # NAME
	printf '\n$ precise explain %s.parquet\n' "$1"
	"$PRECISE" explain "$evidence/$1.parquet" | tee "$evidence/$1.explain.txt"
	printf '\nThe evidence is in %s\n' "$evidence"
}
