# Call chains of a program without frame pointers: each is whole, whichever way the kernel lets the program read a sample. The same page
# faults without chains, among those of all processes: at the tracepoints, if the kernel has what the program needs there.
# Each kernel once.
# pmu: skl@6.12 zen4@6.1 none@newest
# timeout: 120
. "$LAB_DIR/guest/lib.sh"

# Emulation is slow: the tables of the program and of the C library take seconds.
export FOREST_WAIT_MS=8000
"$PRECISE" record -q -g -e page-faults -c 1 --epoch 1s -o forest.parquet -- "$LAB_WORKLOADS/forest"
"$PRECISE" flamegraph -i forest.parquet --folded >all.folded
"$PRECISE" report -i forest.parquet -g touch
grep 'touch [0-9]*$' all.folded | tee forest.folded

chain() { # PATTERN SAMPLES
	expect "$1" "$(awk -v pattern="$1" '$0 ~ pattern { sum += $NF } END { print sum + 0 }' forest.folded)" "$2"
}
chain 'main;pushed;variable;leaf;touch [0-9]*$' 100
chain 'main;callback;.*;compare;leaf;touch [0-9]*$' 1
chain 'main;interrupted;.*;handler;leaf;touch [0-9]*$' 7
chain 'main;jumped;leaf;touch [0-9]*$' 9
chain ';thread;leaf;touch [0-9]*$' 11
chain 'main(;recursive)+;leaf;touch [0-9]*$' 13
chain 'main;vforked;leaf;touch [0-9]*$' 5
if grep 'chain ends' forest.folded; then fail "chains that are not whole"; fi

FOREST_WAIT_MS=0 precise_record everybody -a -e page-faults -c 1 --comm forest -- "$LAB_WORKLOADS/forest"
precise_report everybody function
said everybody groups | tee groups.txt
grep -q '^touch 146 ' groups.txt || fail "not every page fault of touch"
ledger_closes everybody
case $(uname -r) in
6.1.*) at=0 ;;
*) at=1 ;;
esac
expect "notes on tracepoints" "$(grep -c 'ran the program at a tracepoint' everybody.txt || true)" $at
