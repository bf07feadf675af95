# Alder Lake: CPUs 0 and 1 are big cores, 2 and 3 small ones, each kind with a PMU and encodings of its own. precise asks both, and
# what each saw is the script, cell by cell.
# pmu: adl
# timeout: 300
. "$LAB_DIR/guest/lib.sh"
exact

# The same data source means another thing on each kind of core, and each has its own bits for TLB and lock.
cat >big.fire <<-EOF
	load ip=target addr=0x7f0000100000 stride=64 latency=45 source=0x3 count=101
	load ip=target addr=0x7f0000200000 stride=64 latency=200 source=0x6 count=103
	load ip=target addr=0x7f0000300000 latency=700 source=0x1b count=107
	load ip=target addr=0x7f0000400000 latency=60 source=0x23 count=109
	load ip=target addr=0x7f0000500000 latency=20 source=0x1 count=25
	store ip=target addr=0x7f0000600000 stride=64 source=0x1 latency=90 count=113
	cycles ip=target count=127500
EOF
cat >small.fire <<-EOF
	load ip=target addr=0x7f0000100000 stride=64 latency=46 source=0x3 count=131
	load ip=target addr=0x7f0000200000 stride=64 latency=201 source=0x6 count=137
	load ip=target addr=0x7f0000300000 latency=701 source=0x2a count=139
	load ip=target addr=0x7f0000400000 latency=61 source=0x13 count=149
	load ip=target addr=0x7f0000500000 latency=20 source=0x1 count=25
	store ip=target addr=0x7f0000600000 stride=64 source=0x1 latency=91 count=151
	cycles ip=target count=157500
EOF
kind=load others=(10 20)
only() { grep "^$kind" "$1.fire"; } # FILE: its lines of the kind
first() { only "$1" | head -n 1 | sed "s/count=.*/count=$2/"; }
# The lines on one core of each kind, some of the first line on the other core.
fires() {
	only big | "$FIRE" --wait 60 - && only small | "$FIRE" --cpu 2 - &&
		"$FIRE" --cpu 1 -e "$(first big "${others[0]}")" && "$FIRE" --cpu 3 -e "$(first small "${others[1]}")"
}
accounts() { # NAME EVENT SAMPLES-OF-BIG SAMPLES-OF-SMALL, each precise at the level that is granted there: LEVELS
	EVENT=cpu_core/$2/ account "$1" "$3"
	EVENT=cpu_atom/$2/ account "$1" "$4"
	expect "levels that were granted" "$(EVENT=cpu_core/$2/ said "$1" trust granted) $(EVENT=cpu_atom/$2/ said "$1" trust granted)" "$5"
}
rows() { # NAME EVENT: both kinds, below each other, as the standard input has them
	{ EVENT=cpu_core/$2/ said "$1" groups; EVENT=cpu_atom/$2/ said "$1" groups; } | sort >got
	diff got <(sort) || fail "$1: not what was fired"
	echo "$1: $(wc -l <got) rows, as fired"
}

"$PRECISE" list >list.txt
for event in cpu_core/mem-loads/ cpu_atom/mem-loads/ cpu_core/mem-stores/ cpu_atom/mem-stores/ cpu_core/inst_retired.prec_dist/ \
	cpu_atom/inst_retired.any_p/; do
	grep -q "^ *$event" list.txt || fail "precise list does not show $event"
done
if grep -A2 'not available here' list.txt; then fail "an event of sysfs cannot be read"; fi

precise_whole loads -a -e loads -c 1000 --precise require --by cpu,address,source --granule 1
accounts loads mem-loads 430 576 '2 2'
precise_report loads cpu,level,snoop,tlb,locked
# Bit 4 of the data source is a TLB miss on a big core, a lock on a small one, and 5 the other way round.
rows loads mem-loads <<-EOF
	0 L2_hit None L1_or_L2_hit False 101 101000 $((101 * 45)) 45
	0 L3_hit Hit L1_or_L2_hit False 103 103000 $((103 * 200)) 200
	0 Remote_RAM_hit None L2_miss False 107 107000 $((107 * 700)) 700
	0 L2_hit None L1_or_L2_hit True 109 109000 $((109 * 60)) 60
	1 L2_hit None L1_or_L2_hit False 10 10000 $((10 * 45)) 45
	2 L2_hit None L1_or_L2_hit False 131 131000 $((131 * 46)) 46
	2 L3_hit HitM L1_or_L2_hit False 137 137000 $((137 * 201)) 201
	2 RAM_hit Hit L2_miss False 139 139000 $((139 * 701)) 701
	2 L2_hit None L1_or_L2_hit True 149 149000 $((149 * 61)) 61
	3 L2_hit None L1_or_L2_hit False 20 20000 $((20 * 46)) 46
EOF
precise_report loads cpu,address
each() { # CPU COUNT ADDRESS LATENCY
	for ((i = 0; i < $2; i++)); do printf "$1 0x%x 1 1000 $4 $4\n" $(($3 + 64 * i)); done
}
{
	each 0 101 0x7f0000100000 45
	each 0 103 0x7f0000200000 200
	echo "0 0x7f0000300000 107 107000 $((107 * 700)) 700"
	echo "0 0x7f0000400000 109 109000 $((109 * 60)) 60"
	each 1 10 0x7f0000100000 45
	each 2 131 0x7f0000100000 46
	each 2 137 0x7f0000200000 201
	echo "2 0x7f0000300000 139 139000 $((139 * 701)) 701"
	echo "2 0x7f0000400000 149 149000 $((149 * 61)) 61"
	each 3 20 0x7f0000100000 46
} | rows loads mem-loads

kind=store
precise_whole stores -a -e stores -c 1000 --precise require --by cpu,address,source --granule 1
accounts stores mem-stores 123 171 '3 2'
# The driver calls the stores of small cores loads; they are not.
precise_report stores cpu,op,level
rows stores mem-stores <<-EOF
	0 STORE L1_hit 113 113000 $((113 * 90)) 90
	1 STORE L1_hit 10 10000 $((10 * 90)) 90
	2 STORE L1_hit 151 151000 $((151 * 91)) 91
	3 STORE L1_hit 20 20000 $((20 * 91)) 91
EOF

others=(0 0)
precise_whole kept -a -e stores -c 1000 --by cpu --filter 'mem_op == store'
accounts kept mem-stores 113 151 '3 2'

kind=cycles others=(10000 20000)
precise_whole cycles -a -e cycles -c 1000 --precise require --by cpu
accounts cycles cycles 137 177 '3 3'
rows cycles cycles <<-EOF
	0 127 127000 0 0
	1 10 10000 0 0
	2 157 157000 0 0
	3 20 20000 0 0
EOF

# One process that runs on both kinds: each kind's event follows it there.
if [ "$LAB_KERNEL" != 6.1 ]; then
	kind=load
	only big >loads.big && only small >loads.small
	# shellcheck disable=SC2016 # for the inner shell
	precise_record task -e loads -c 1000 --precise require -- sh -c '"$0" loads.big && "$0" --cpu 3 loads.small' "$FIRE"
	precise_report task function
	accounts task mem-loads 420 556 '2 2'
fi

# What small cores lack is said.
fires() { "$FIRE" --wait 60 -e 'event event=0x11d0 ip=target count=110567' -e 'event event=0x12d0 ip=target count=120567'; }
precise_whole tlb -a -e tlb -c 1000 --precise require --by cpu
EVENT=cpu_core/mem_inst_retired.stlb_miss_loads/ account tlb 110
EVENT=cpu_core/mem_inst_retired.stlb_miss_stores/ account tlb 120
said tlb findings | grep -q 'cores of cpu_atom have no tlb, so they are not sampled' || fail "nothing says that small cores are not sampled"
RECORD_STATUS=66 precise_record fetch -C 2 -e fetch
grep -q 'exists on none of the selected CPUs' fetch.txt || fail "nothing says why small cores have no fetch"
