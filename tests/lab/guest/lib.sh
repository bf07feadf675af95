# What lab tests share: `. "$LAB_DIR/guest/lib.sh"`. They run under `bash -euo pipefail`.
# shellcheck shell=bash

FIRE="$LAB_BIN/lab-fire"

# Counters move only by lab-fire from here on: counts are exact.
exact() { pmu_set ns_per_event 0; }

# Counters move by themselves, one event per so many nanoseconds: samples are real instructions of whatever runs.
timed() { pmu_set ns_per_event "${1:-10}"; }

pmu_set() { echo "$2" >"/sys/module/$LAB_MODULE/parameters/$1"; }

# Has the host stop all CPUs of this guest for so many seconds, and returns when that is over. The clocks go on meanwhile, as in
# a guest that its host does not run: they jump.
pause_guest() { # SECONDS
	local now then=${EPOCHREALTIME/./} i
	echo "LAB-PAUSE $1"
	for ((i = 0; i < 400; i++)); do
		sleep 0.05
		now=${EPOCHREALTIME/./}
		[ $((now - then)) -lt $(($1 * 900000)) ] || return 0
		then=$now
	done
	fail "the host did not stop this guest"
}

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

# How many events `-e mem` and `-e c2c` open on a CPU, for lab-fire --events: loads and stores are two on Intel.
# shellcheck disable=SC2034
if [ "$LAB_VENDOR" = intel ]; then MEM_EVENTS=2; else MEM_EVENTS=1; fi

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

# Records with precise, shown only where it ends with another status than wanted (RECORD_STATUS, 0): NAME, then the arguments of `record`.
# What it printed is in NAME.txt, the capture in NAME.parquet.
precise_record() {
	local name=$1 status=0
	shift
	"$PRECISE" record --quiet -o "$name.parquet" "$@" >"$name.txt" 2>&1 || status=$?
	[ "$status" = "${RECORD_STATUS:-0}" ] || {
		echo "\$ precise record $*"
		cat "$name.txt"
		fail "record $name ended with $status, not ${RECORD_STATUS:-0}"
	}
}

# Runs COMMAND in the background, ends it as Ctrl-C would when the function `fires` is done, and returns its status.
# `fires` must wait (lab-fire --wait, and --events where there are several) until somebody counts.
while_firing() { # OUTPUT ERRORS COMMAND…
	local status=0 recorder
	"${@:3}" >"$1" 2>"$2" &
	recorder=$!
	fires || { cat "$2"; fail "lab-fire"; }
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	return "$status"
}

# Records whole CPUs while others fire, as any kernel can do it, also 6.1 with IBS: NAME, then the arguments of `record`. Fires
# whatever `fires` starts, for RECORD_FOR (100s) at most. The report by the dimensions that it recorded is NAME.json at once. Ends with
# RECORD_STATUS (0).
precise_whole() {
	local name=$1 status=0
	shift
	while_firing "$name.json" "$name.txt" "$PRECISE" record --quiet --json -o "$name.parquet" --duration "${RECORD_FOR:-100s}" "$@" || status=$?
	[ "$status" = "${RECORD_STATUS:-0}" ] || {
		echo "\$ precise record $*"
		cat "$name.txt"
		fail "record $name ended with $status, not ${RECORD_STATUS:-0}"
	}
}

# The report of NAME.parquet by KEYS into NAME.json, for `said`: of all samples, those of idle CPUs too, unless a FILTER says which.
precise_report() { # NAME KEYS [FILTER]
	"$PRECISE" report -i "$1.parquet" --by "$2" ${3:+--filter "$3"} --idle -n 100000 --json >"$1.json"
}

# One thing that NAME.json says; see lab-said (said.rs).
said() { # NAME WHAT [WHICH]
	"$LAB_BIN/lab-said" "$1.json" "${@:2}"
}

# The account of NAME.json: SEEN samples were seen, none more were due, KEPT were aggregated, the rest is what clauses rejected, and
# none was throttled or lost. Without KEPT, all were kept.
account() { # NAME SEEN [KEPT]
	local kept=${3:-$2}
	expect "account of $1" "$(said "$1" account)" \
		"seen $2 due $2 closes true throttled 0 lost 0 full 0 kept $kept rejected $(($2 - kept))"
}

# The ledger of NAME.json: as many samples as this were seen, none more were due, each is accounted for, and none was throttled or lost.
ledger_of() { # NAME SEEN
	expect "$1: seen" "$(said "$1" ledger seen)" "$2"
	expect "$1: expected of the event's own count" "$(said "$1" trust expected)" "$2"
	ledger_closes "$1"
}

ledger_closes() { # NAME
	expect "$1: ledger closes" "$(said "$1" trust closes)" true
	expect "$1: throttled, lost, table full" \
		"$(said "$1" ledger throttled), $(said "$1" ledger lost), $(said "$1" ledger 'table full')" "0, 0, 0"
}
