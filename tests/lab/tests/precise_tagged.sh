# What IBS's registers say beyond the data source: branches with target, outcome and time to retire, fetches, core complexes.
# pmu: amd
# generations: every
# timeout: 400
. "$LAB_DIR/guest/lib.sh"
exact

# IbsOpData: tag to retire in bits 16-31, return 34, taken 35, mispredicted 36, branch 37.
op() { printf '0x%x' $(($1 << 16 | $2 << 34)); }
cat >branches.fire <<-EOF
	op data=$(op 20 0xa) target=0x7f0000100000 ip=target count=120
	op data=$(op 35 0xe) target=0x7f0000200000 ip=target count=130
	op data=$(op 10 0x8) target=0x7f0000300000 ip=target+8 count=140
	op data=$(op 50 0xb) target=0x7f0000400000 ip=target count=150
	op load ip=target addr=0x7f0000500000 count=30
	op ip=target count=40
EOF
cat >fetches.fire <<-EOF
	fetch complete ip=target latency=7 count=110
	fetch complete ic-miss ip=target latency=40 count=120
	fetch tlb-miss tlb2-miss ip=target latency=90 count=130
EOF

fires() { "$FIRE" --wait 60 "$script"; }

rows() { # NAME: the groups, the outcome's words joined
	said "$1" groups | sort
}

script=branches.fire
precise_whole branches -C 0 -e branches -c 65536 --by ip,address,outcome,latency --granule 1
precise_report branches outcome
ledger_of branches 610
expect "rejected, as no branches" "$(said branches rejected | grep -o '[0-9]*$')" 70
rows branches | tee outcomes
sort >wanted <<-EOF
	taken 120 $((120 * 65536)) $((120 * 20)) 20
	taken,_mispredicted 130 $((130 * 65536)) $((130 * 35)) 35
	not_taken 140 $((140 * 65536)) $((140 * 10)) 10
	return 150 $((150 * 65536)) $((150 * 50)) 50
EOF
diff outcomes wanted || fail "the branches are not what was fired"
precise_report branches address
expect "a target" "$(said branches groups | grep 0x7f0000400000)" "0x7f0000400000 150 $((150 * 65536)) $((150 * 50)) 50"

precise_whole missed -C 0 -e branches -c 65536 --filter 'branch == mispredicted && latency >= 30' --by ip,outcome
precise_report missed outcome
expect "mispredicted only" "$(said missed groups)" "taken,_mispredicted 130 $((130 * 65536)) $((130 * 35)) 35"

script=fetches.fire
precise_whole fetches -C 0 -e fetch -c 65536 --by ip,outcome,latency
precise_report fetches outcome
ledger_of fetches 360
rows fetches | tee outcomes
if [ "$LAB_PMU" = zen3 ]; then
	# Its bit for a miss of the instruction cache cannot be relied on (erratum 1238): nothing is said of it.
	sort >wanted <<-EOF
		completed,_IC_unknown 230 $((230 * 65536)) $((110 * 7 + 120 * 40)) 40
		aborted,_IC_unknown,_ITLB_walk 130 $((130 * 65536)) $((130 * 90)) 90
	EOF
else
	sort >wanted <<-EOF
		completed 110 $((110 * 65536)) $((110 * 7)) 7
		completed,_IC_miss 120 $((120 * 65536)) $((120 * 40)) 40
		aborted,_ITLB_walk 130 $((130 * 65536)) $((130 * 90)) 90
	EOF
fi
diff outcomes wanted || fail "the fetches are not what was fired"
precise_whole starved -C 0 -e fetch -c 65536 --filter 'fetch == aborted' --by ip,outcome
precise_report starved outcome
expect "aborted only" "$(said starved groups | cut -d' ' -f2)" 130

# Accesses: what the registers say beyond the data source, as a filter beside a table that is grouped by the data source.
cat >accesses.fire <<-EOF
	op load dc-miss l2-miss dirty ip=target addr=0x7f0000100000 latency=90 source=1 count=110
	op load dc-miss l2-miss dirty ip=target addr=0x7f0000200000 latency=150 source=2 count=120
	op load dc-miss l2-miss ip=target addr=0x7f0000300000 latency=160 source=2 count=125
	op load dc-miss l2-miss remote dirty ip=target addr=0x7f0000400000 latency=400 source=5 count=130
	op load dc-miss l2-miss ip=target addr=0x7f0000500000 latency=300 source=3 count=140
	op load misaligned ip=target addr=0x7f000060003e count=150
EOF
kept() { # NAME FILTER SAMPLES
	script=accesses.fire
	precise_whole "$1" -C 0 -e mem -c 65536 --by ip,address,source,latency --granule 1 --filter "$2"
	precise_report "$1" address
	ledger_of "$1" 775
	expect "$2" "$(said "$1" groups | awk '{sum += $2} END {print sum + 0}')" "$3"
}
kept misaligned 'access == misaligned' 150
if [ "$LAB_PMU" = zen3 ]; then
	RECORD_STATUS=2 precise_record ccx -C 0 -e mem --filter 'mem_ccx == other_ccx' --duration 1s
else
	kept same 'mem_ccx == same_ccx' 110
	kept other 'mem_ccx == other_ccx' 245
	kept node 'mem_ccx == other_node' 130
	expect "latency of the other CCX" "$(said other groups | grep 0x7f0000200000)" "0x7f0000200000 120 $((120 * 65536)) $((120 * 150)) 150"
fi
echo "as fired"
