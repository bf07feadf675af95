# `perf record --call-graph fp,defer` of the newest perf on the newest kernel, imported. Callers are taken when a task returns to user
# space, in a record of their own. Each sample has the callers that `perf script` of that perf prints, and known chains have known counts.
# pmu: none
# kernel: newest
# timeout: 120
. "$LAB_DIR/guest/lib.sh"

records() { # NAME KIND
	grep -c "PERF_RECORD_$2" "$1.dump" || true
}
recorded() { # NAME ARGUMENT…
	local name=$1
	"$NEWEST_PERF" record -q --call-graph fp,defer -o "$name.data" "${@:2}" >perf.out 2>&1 || { cat perf.out; fail "perf record ${*:2}"; }
	"$NEWEST_PERF" report -D -i "$name.data" >"$name.dump" 2>perf.out || { cat perf.out; fail "perf report -D of $name"; }
	cp "$name.data" "$name.dump" "$LAB_OUT"
	echo "$name: $(records "$name" SAMPLE) samples, $(records "$name" CALLCHAIN_DEFERRED) deferred chains"
	[ "$(records "$name" CALLCHAIN_DEFERRED)" -gt 0 ] || fail "$name has no deferred chain"
	"$PRECISE" import "$name.data" -o "$name.parquet" --json >"$name-import.json" || fail "import of $name"
	! grep -q '"closes": false' "$name-import.json" || { cat "$name-import.json"; fail "the ledger of $name does not close"; }
	"$PRECISE" flamegraph -i "$name.parquet" --folded >"$name.folded"
}
# Samples whose chains end like this.
ends() { # NAME END
	"$PRECISE" report -i "$1.parquet" -g --json | python3 -c '
import json, sys
ends = [end for event in json.load(sys.stdin)["events"] for end in event["ends"]]
print(sum(end["samples"] for end in ends if end["end"] == sys.argv[1]))' "$2"
}

# A program with frame pointers. Its first pages are written by execve, which returns into another program than the one that called it.
FOREST_WAIT_MS=0 recorded faults -e page-faults -c 1 -- "$LAB_WORKLOADS/forest-frames"
"$LAB_BIN/lab-chains" faults.parquet faults.data || fail "page faults: the chains are not those of perf"
grep 'touch [0-9]*$' faults.folded
chain() { # PATTERN SAMPLES
	expect "$1" "$(grep -E "$1" faults.folded | awk '{ sum += $NF } END { print sum + 0 }')" "$2"
}
chain ';main;pushed;variable;leaf;touch [0-9]*$' 100
chain ';main;[^;]*;handler;leaf;touch [0-9]*$' 7
chain ';main;jumped;leaf;touch [0-9]*$' 9
chain ';thread;leaf;touch [0-9]*$' 11
chain ';main(;recursive){61};leaf;touch [0-9]*$' 13
chain ';main;vforked;leaf;touch [0-9]*$' 5
# Through the C library, which has no frame pointers.
chain ';compare;leaf;touch [0-9]*$' 1
chain ';touch [0-9]*$' 146
# More than one sample of a stay in the kernel has the same cookie, and they share one record.
[ "$(records faults SAMPLE)" -gt "$(records faults CALLCHAIN_DEFERRED)" ] || fail "no two samples share a record"
expect "chains of page faults without callers" "$(ends faults deferred)" 0

# All CPUs, with the records in the ring of another event (dummy:u).
recorded clock -e cpu-clock -F 500 -a -- sh -c 'ls -lR /usr/share/doc/a* >/dev/null'
"$LAB_BIN/lab-chains" clock.parquet clock.data || fail "clock: the chains are not those of perf"

# The callers of the last system call come after the record of the exit. perf does not know any more what was mapped.
recorded exits -e syscalls:sys_enter_exit_group -c 1 -a -- sh -c 'for i in 1 2 3 4 5 6; do /bin/true; done'
expect "exits of true that libc called" "$(grep -E '^true;[^;]*exit [0-9]+$' exits.folded | awk '{ sum += $NF } END { print sum + 0 }')" 6
expect "exits without callers" "$(ends exits deferred)" 0

# A task that sleeps when the recording ends does not return to user space in it: that record never comes.
recorded asleep -e context-switches -c 1 -- sh -c 'sleep 20 & sleep 1'
"$LAB_BIN/lab-chains" asleep.parquet asleep.data || fail "asleep: the chains are not those of perf"
grep 'chain ends' asleep.folded
# The cookies of samples that no record has.
waiting=$(awk '/CONTEXT_USER_DEFERRED/ { getline; sub(/^0+/, "", $3); samples[$3]++ }
	/PERF_RECORD_CALLCHAIN_DEFERRED/ { sub(/^0x/, "", $NF); records[$NF] = 1 }
	END { for (cookie in samples) if (!(cookie in records)) sum += samples[cookie]; print sum + 0 }' asleep.dump)
expect "samples whose record never came, by the recording" "$waiting" 1
expect "samples whose record never came, by precise" "$(ends asleep deferred)" 1
grep -q '^sleep;\[chain ends: no record of the callers came\];.*clock_nanosleep.* 1$' asleep.folded ||
	fail "no chain says that its record never came"
"$PRECISE" report -i asleep.parquet -g | grep 'no record of the callers came' || fail "the report does not say why a chain ends"
