# The views of memory: each number of mem, latency, tlb and numa is the script's, and diff says what became slower.
# pmu: skl zen4
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

script() { # LATENCY of what hits L3 or memory
	if [ "$LAB_VENDOR" = intel ]; then
		cat <<-EOF
			load ip=target addr=heap latency=31 source=0x1 count=100
			load ip=target addr=0x7f0000200000 stride=64 latency=$1 source=0x7 count=240
			load ip=target addr=0x7f0000300000 stride=64 latency=700 source=0x1b count=150
			store ip=target addr=0x7f0000100000 stride=8 source=1 count=200
		EOF
	else
		cat <<-EOF
			op load ip=target addr=heap count=100
			op load dc-miss ip=target addr=0x7f0000200000 stride=64 latency=20 count=150
			op load ip=target addr=0x7f0000300000 stride=64 latency=$1 source=3 count=240
			op load tlb-miss tlb2-miss ip=target addr=0x7f0000400000 stride=64 latency=700 source=3 count=150
			op store ip=target addr=0x7f0000500000 stride=64 count=200
		EOF
	fi
}
if [ "$LAB_VENDOR" = intel ]; then period=1000; else period=65536; fi
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS "$now.fire"; }
for now in base new; do
	if [ $now = base ]; then script 200 >base.fire; else script 400 >new.fire; fi
	precise_whole $now -C 0 -e mem -c $period --by ip,cpu,source,latency,page-size
done
view() { "$PRECISE" "$1" -i base.parquet "${@:2}"; }

# Op, level, translation, samples, sum of latencies. What is told of a store differs by kernel.
view mem
view mem -x'|' | awk -F'|' 'NR > 1 {print $2 == "STORE" ? "STORE|" $7 : $2 "|" $3 "|" $5 "|" $7 "|" $11}' | sort >mem
if [ "$LAB_VENDOR" = intel ]; then
	sort >mem.wanted <<-EOF
		LOAD|L1 hit|L1 or L2 hit|100|3100
		LOAD|L3 hit|L1 or L2 hit|240|48000
		LOAD|Remote RAM hit|L2 miss|150|105000
		STORE|200
	EOF
	far='Remote RAM hit' timed=490
else
	sort >mem.wanted <<-EOF
		LOAD|L1 hit|L1 hit|100|
		LOAD|L2 hit|L1 hit|150|3000
		LOAD|RAM hit|L1 hit|240|48000
		LOAD|RAM hit|L2 miss|150|105000
		STORE|200
	EOF
	far='RAM hit' timed=540
fi
diff mem mem.wanted || fail "mem is not what was fired"

# Level, samples, maximum; and the percentiles within what is stated.
view latency
view latency -x'|' | awk -F'|' -v far="$far" '$2 == far {print $3, $8, ($12 > 700 * 0.9375 && $12 < 700 * 1.0625)}' >latency
if [ "$LAB_VENDOR" = intel ]; then wanted="150 700 1"; else wanted="390 700 1"; fi
expect "latencies of memory" "$(cat latency)" "$wanted"
expect "samples with a latency" "$(view latency -x'|' | awk -F'|' 'NR > 1 {n += $3} END {print n}')" $timed
if [ "$LAB_VENDOR" = intel ]; then
	view latency | tr '\n' ' ' | grep -q 'only loads of at least' || fail "nothing says that fast loads were not sampled"
else
	view latency | tr '\n' ' ' | grep -q 'IBS measures latency only for loads that miss' || fail "nothing says that L1 hits have no latency"
fi

# Function, walks, average latency of what walked.
view tlb
view tlb -x'|' | awk -F'|' 'NR > 1 {print $2, $4, $11}' | grep ' 150 ' >walks
expect "walks" "$(cat walks)" "lab_fire_target 150 700.000"

# Sizes of pages: the kernel looks them up, and finds none where the script has made the address up.
"$PRECISE" report -i base.parquet --by page-size,op -x'|' | awk -F'|' '$2 == "4 KiB" && $3 == "LOAD" {print $4}' >sizes
expect "loads on pages of 4 KiB" "$(cat sizes)" 100
view tlb | grep -q 'Page size' || fail "tlb has no table of page sizes"

# The guest has one node.
view numa
view numa -x'|' | awk -F'|' '$3 ~ /memory/ {print $2, $3, $4}' >nodes
if [ "$LAB_VENDOR" = intel ]; then wanted="0 other memory 150"; else wanted="0 memory 0 390"; fi
expect "accesses to memory" "$(cat nodes)" "$wanted"

"$PRECISE" diff base.parquet new.parquet --by level | tee diff
grep -q '^NEW is slower: ' diff || fail "diff does not say that NEW is slower"
"$PRECISE" diff new.parquet base.parquet --by level | grep -q '^NEW is faster: ' || fail "the other way round, NEW is not faster"
