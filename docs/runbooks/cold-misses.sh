#!/bin/bash
# What became slower since the deploy? BASELINE is a capture of before, in $BASELINE; without one, this makes it.
. "$(dirname "$0")/common.sh"

# Records into NAME.parquet. Returns 1 if the capture has CPU time and page faults, and no latencies.
record_accesses() { # NAME OPTION…
	record "$1" -e mem --by ip,cgroup,process,source,latency "${@:2}" && return
	record_software "$1" 'which level of memory answers, and how long that takes' "${@:2}"
	return 1
}

keys=(level function)
if [ -z "${BASELINE:-}" ]; then
	if record_accesses before "$@"; then show mem before; else show report before --by function; fi
	printf '\nThis is the baseline. After the deploy: BASELINE=%s %s\n' "$evidence/before.parquet" "$0"
	exit 0
fi
record_accesses after "$@" || keys=(function module)
for by in "${keys[@]}"; do
	printf '\n$ precise diff %s after.parquet --by %s\n' "$BASELINE" "$by"
	"$PRECISE" diff "$BASELINE" "$evidence/after.parquet" --by "$by" | tee "$evidence/diff.$by.txt"
done
conclude after
