# What stock `perf mem record` and `perf c2c record` wrote, imported, is what `precise record` saw of the same samples: by instruction,
# byte, level, snoop, TLB, lock and latency, with counts and sums.
# pmu: skl zen4
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	period=1000
	cat >both.fire <<-X
		load ip=target addr=0x7f0000100000 stride=64 latency=40 source=0x1 count=50
		load ip=target addr=0x7f0000200000 stride=64 latency=200 source=0x7 count=24
		load ip=target+4 addr=0x7f0000300000 stride=8 latency=700 source=0x1b count=30
		load ip=target addr=0x7f0000500000 latency=62 source=0xc count=12
		store ip=target addr=0x7f0000100000 stride=8 source=1 count=20
	X
else
	period=65536
	cat >both.fire <<-X
		op load ip=target addr=0x7f0000100000 stride=64 count=50
		op load dc-miss ip=target+4 addr=0x7f0000100000 stride=64 latency=20 count=9
		op load ip=target addr=0x7f0000200000 stride=64 latency=200 source=1 count=24
		op load tlb-miss tlb2-miss ip=target addr=0x7f0000300000 stride=8 latency=700 source=3 count=30
		op load locked ip=target addr=0x7f0000400000 count=10
		op load ip=target addr=0x7f0000800000 latency=310 source=5 count=13
		op store ip=target addr=0x7f0000900000 count=20
		op ip=target count=14
	X
fi
keys=function,symoff,address,op,level,snoop,tlb,locked,remote,latency
dimensions=ip,address,source,latency

# With -C 0, perf hears only of what CPU 0 maps: a program that began on another has no maps in the recording.
taskset -pc 0 $$ >taskset.out || fail "taskset"
quiet_perf mem record -C 0 -c $period -o mem.data -- "$FIRE" both.fire
quiet_perf c2c record -C 0 -c $period -o c2c.data -- "$FIRE" both.fire
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS both.fire; }
precise_whole live -C 0 -e mem -c $period --by $dimensions --granule 1

# Loads and stores of all events of NAME.parquet: an op that is neither is nothing to `precise record -e mem`.
accesses() { # NAME EVENT...
	local name=$1 event
	shift
	precise_report "$name" $keys
	for event in "$@"; do EVENT=$event said "$name" groups; done | grep -E ' (LOAD|STORE) ' | sort
}
import() { # NAME FILE
	"$PRECISE" import "$2" -o "$1.parquet" --by $dimensions --granule 1 --json >"$1-import.json" || fail "import of $2"
	grep -q '"closes": true' "$1-import.json" || { cat "$1-import.json"; fail "the ledger of $2 does not close"; }
	! grep -q '"closes": false' "$1-import.json" || fail "a ledger of $2 does not close"
}

if [ "$LAB_VENDOR" = intel ]; then ours='mem-loads mem-stores'; else ours=mem; fi
# shellcheck disable=SC2086
accesses live $ours >wanted
between "kinds of samples" "$(wc -l <wanted)" 50 300
for from in mem c2c; do
	import $from $from.data
	perf evlist -i $from.data 2>/dev/null | grep -v dummy >events
	mapfile -t events <events
	accesses $from "${events[@]}" >got
	diff wanted got || fail "perf $from record, imported, is not what precise record saw"
	echo "$from: $(wc -l <got) kinds of samples, the same"
done

# The same through a pipe, and compressed.
quiet_perf mem record -z -C 0 -c $period -o z.data -- "$FIRE" both.fire
import z z.data
accesses z "${events[@]}" >got
diff wanted got || fail "a compressed recording is another"
perf record -o - -d -W -C 0 -c $period -e "$(sed -n 1p events)" -- "$FIRE" both.fire 2>/dev/null >pipe.data || fail "perf through a pipe"
"$PRECISE" import - -q -o pipe.parquet --by $dimensions --granule 1 <pipe.data >pipe.txt || { cat pipe.txt; fail "import of a pipe"; }
