#!/bin/bash
# What became slower since the deploy? BASELINE is a capture of before, in $BASELINE; without one, this makes it.
. "$(dirname "$0")/common.sh"

if [ -z "${BASELINE:-}" ]; then
	record before -e mem --by ip,cgroup,process,source,latency "$@"
	show mem before
	printf '\nThis is the baseline. After the deploy: BASELINE=%s %s\n' "$evidence/before.parquet" "$0"
	exit 0
fi
record after -e mem --by ip,cgroup,process,source,latency "$@"
for by in level function; do
	printf '\n$ precise diff %s after.parquet --by %s\n' "$BASELINE" "$by"
	"$PRECISE" diff "$BASELINE" "$evidence/after.parquet" --by "$by" | tee "$evidence/diff.$by.txt"
done
conclude after
