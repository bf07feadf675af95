# What lab tests share: `. "$LAB_DIR/guest/lib.sh"`. They run under `bash -euo pipefail`.
# shellcheck shell=bash

FIRE="$LAB_BIN/lab-fire"

# Counters move only by lab-fire from here on: counts are exact.
exact() { pmu_set ns_per_event 0; }

# Counters move by themselves, one event per so many nanoseconds: samples are real instructions of whatever runs.
timed() { pmu_set ns_per_event "${1:-10}"; }

pmu_set() { echo "$2" >"/sys/module/$LAB_MODULE/parameters/$1"; }

fail() {
	echo "FAILED: $*"
	exit 1
}

# expect WHAT GOT WANTED
expect() {
	[ "$2" = "$3" ] || fail "$1 is $2, not $3"
	echo "$1: $2, as it should be"
}

# between WHAT GOT LEAST MOST
between() {
	[ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1 is $2, not in $3..$4"
	echo "$1: $2, in $3..$4"
}

# Runs perf, shown with its output only where it fails.
quiet_perf() {
	perf "$@" >perf.out 2>&1 || {
		echo "\$ perf $*"
		cat perf.out
		return 1
	}
}

# The samples of a recording, one line each, with the fields asked for.
samples() { # FILE FIELDS
	perf script --no-inline -i "$1" -F "$2" 2>/dev/null | grep -v '^$' || true
}

# The load-latency event as perf wants it: Sapphire Rapids and later only have it in a group with an auxiliary event.
# By its number, not as mem-loads: to that, perf adds the bits of the default threshold (3) to those of the one it was given.
loads_event() { # LDLAT
	if [ "$LAB_PMU" = spr ]; then
		echo "{cpu/mem-loads-aux/,cpu/event=0xcd,umask=0x1,ldlat=$1/}:P"
	else
		echo "cpu/event=0xcd,umask=0x1,ldlat=$1/P"
	fi
}
