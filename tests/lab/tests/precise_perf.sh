# At the same samples, stock `perf mem record` and `perf c2c record` say what precise says: counts and weights by level, snoop, TLB and lock.
# pmu: skl spr@6.12 zen4
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	period=1000
	cat >both.fire <<-X
		load ip=target addr=0x7f0000100000 stride=64 latency=40 source=0x1 count=50
		load ip=target addr=0x7f0000200000 stride=64 latency=200 source=0x7 count=24
		load ip=target addr=0x7f0000300000 stride=64 latency=700 source=0x1b count=30
		load ip=target addr=0x7f0000400000 latency=60 source=0x23 count=10
		load ip=target addr=0x7f0000500000 latency=61 source=0x5 count=11
		load ip=target addr=0x7f0000500000 latency=62 source=0xc count=12
		store ip=target addr=0x7f0000100000 stride=8 source=1 count=20
	X
else
	period=65536
	cat >both.fire <<-X
		op load ip=target addr=0x7f0000100000 stride=64 count=50
		op load dc-miss ip=target+4 addr=0x7f0000100000 stride=64 latency=20 count=9
		op load ip=target addr=0x7f0000200000 stride=64 latency=200 source=1 count=24
		op load tlb-miss tlb2-miss ip=target addr=0x7f0000300000 stride=64 latency=700 source=3 count=30
		op load locked ip=target addr=0x7f0000400000 count=10
		op load remote ip=target addr=0x7f0000500000 latency=900 source=3 count=11
		op load ip=target addr=0x7f0000800000 latency=300 source=2 count=12
		op load ip=target addr=0x7f0000800000 latency=310 source=5 count=13
		op store ip=target addr=0x7f0000900000 count=20
		op ip=target count=14
	X
fi

# perf's words for each sample of FILE, as ours: op, level, snoop, tlb, locked, remote; then how many, and the sum of their weights.
by_perf() {
	samples "$1" weight,data_src | sed -n 's/.*|OP \(LOAD\|STORE\)|LVL \([^|]*\)|SNP \([^|]*\)|TLB \([^|]*\)|LCK \([^|]*\)|.* \([0-9]*\) *$/\1|\2|\3|\4|\5|\6/p' |
		awk -F'|' '{
			remote = $2 ~ /Remote/ ? "True" : "False"
			level = $2
			sub(/^.* or /, "", level)
			# Of kernels that name levels in the old way.
			sub(/^Remote Cache.*/, "Any cache hit", level)
			sub(/^Local /, "", level)
			sub(/ \([0-9] hops?\)/, "", level)
			if (remote == "True" && level !~ /^Remote/) level = "Remote " level
			key = $1 " " level "|" $3 "|" $4 "|" $5 "|" remote
			gsub(/N\/A/, "not given", key)
			count[key]++
			weight[key] += $6
		} END {for (key in count) print key "|" count[key] "|" weight[key]}' |
		tr ' |' '_ ' | sed 's/_/ /; s/ Yes / True /; s/ No / False /' | sort
}
# Ours have sums of periods and maxima as well.
by_precise() {
	EVENT=$1 said both groups | awk '{print $1, $2, $3, $4, $5, $6, $7, $(NF - 1)}'
}

# On Sapphire Rapids perf's loads and stores do not fit on the counters together: they take turns, and each would miss the other's
# turn. So loads only there.
if [ "$LAB_PMU" = spr ]; then
	quiet_perf mem -t load record -C 0 -c $period -o mem.data -- "$FIRE" both.fire
	cp mem.data c2c.data
else
	quiet_perf mem record -C 0 -c $period -o mem.data -- "$FIRE" both.fire
	quiet_perf c2c record -C 0 -c $period -o c2c.data -- "$FIRE" both.fire
fi
samples mem.data weight,data_src | sed 's/  */ /g' | sort | uniq -c
by_perf mem.data >by-perf
by_perf c2c.data >by-c2c
cat by-perf
between "kinds of samples" "$(wc -l <by-perf)" 6 9
diff by-perf by-c2c || fail "perf mem and perf c2c saw different samples"

fires() { "$FIRE" --wait 60 --events $MEM_EVENTS both.fire; }
precise_whole both -C 0 -e mem -c $period --by source,latency
if [ "$LAB_VENDOR" = intel ]; then events=mem-loads; else events=mem; fi
"$PRECISE" report -i both.parquet --by op,level,snoop,tlb,locked,remote -n 1000 --json >both.json
for event in $events; do by_precise "$event"; done | sort >by-precise
if [ "$LAB_VENDOR" = intel ]; then grep '^LOAD' by-perf >wanted; else cp by-perf wanted; fi
diff wanted by-precise || fail "precise and perf do not agree"

if [ "$LAB_VENDOR" = intel ]; then
	expect "stores that precise saw" "$(EVENT=mem-stores said both ledger seen)" 20
fi
[ "$LAB_PMU" != spr ] || exit 0

# c2c: loads that found a line modified elsewhere, and stores.
perf c2c report -i c2c.data --stdio --stats >stats 2>&1
stat() { awk -F: -v name="$1" '$1 ~ name {sum += $2} END {print sum + 0}' stats; }
expect "modified lines, as perf c2c counts them" "$(awk '$3 == "HitM" {sum += $7} END {print sum}' by-precise)" \
	"$(stat '^ *Load (Local|Remote) HITM')"
expect "stores, as perf c2c counts them" "$(stat '^ *Store Operations')" 20
