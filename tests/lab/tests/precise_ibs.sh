# precise on IBS: the capture is the script, loads are told from other ops, and per-task sampling is refused in words where the kernel has none.
# pmu: amd
# generations: every
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

cat >ops.fire <<-EOF
	op load ip=target addr=0x7f0000100000 stride=64 count=100
	op load dc-miss ip=target+4 addr=0x7f0000200000 stride=64 latency=20 count=50
	op load ip=target addr=0x7f0000300000 stride=64 latency=321 source=3 count=140
	op load tlb-miss tlb2-miss ip=target addr=0x7f0000400000 stride=64 latency=700 source=3 count=30
	op store ip=target addr=0x7f0000500000 stride=64 count=120
	op ip=target count=10
EOF

fires() { "$FIRE" --wait 60 ops.fire >fired.txt; }

if [ "$LAB_KERNEL" = 6.1 ]; then
	RECORD_STATUS=66 precise_record task -e loads -c 65536 -- "$FIRE" ops.fire
	cat task.txt
	grep -q 'Linux 6.2' task.txt || fail "nothing says that this kernel samples IBS for whole CPUs only"
	grep -q -e '-a' task.txt || fail "nothing says what to do"
else
	precise_record task -e loads -c 65536 --by ip,address,source,latency --granule 1 -- "$FIRE" ops.fire
	precise_report task function
	expect "functions" "$(said task groups)" "lab_fire_target 320 $((320 * 65536)) $((50 * 20 + 140 * 321 + 30 * 700)) 700"
	ledger_of task 450
fi

precise_whole loads -C 0 -e loads -c 65536 --by ip,address,source,latency --granule 1
precise_report loads function
expect "lab-fire" "$(cat fired.txt)" "fired 450 taken 450"
ledger_of loads 450
said loads rejected
expect "rejected, as no loads" "$(said loads rejected | grep -o '[0-9]*$')" 130
expect "functions" "$(said loads groups)" "lab_fire_target 320 $((320 * 65536)) $((50 * 20 + 140 * 321 + 30 * 700)) 700"
precise_report loads level,tlb,op
said loads groups | awk '{print $1, $2, $3, $4, $6, $7}' | sort >sources
cat sources
sort >sources.wanted <<-EOF
	L1_hit L1_hit LOAD 100 0 0
	L2_hit L1_hit LOAD 50 1000 20
	RAM_hit L1_hit LOAD 140 44940 321
	RAM_hit L2_miss LOAD 30 21000 700
EOF
diff sources sources.wanted || fail "the data sources are not what was fired"
precise_report loads address
expect "different addresses" "$(said loads groups | sort -u | wc -l)" 320
expect "an address" "$(said loads groups | grep 0x7f0000300040)" "0x7f0000300040 1 65536 321 321"

precise_whole ops -C 0 -e ibs_op// -c 65536 --by ip,address,source,latency --granule 1 --min-latency 100
precise_report ops function
ledger_of ops 450
expect "slow" "$(said ops groups)" "lab_fire_target 170 $((170 * 65536)) $((140 * 321 + 30 * 700)) 700"
expect "rejected as fast" "$(said ops rejected | grep -o '[0-9]*$')" 280

precise_whole stores -C 0 -e stores -c 65536 --by ip,address,source --granule 1
precise_report stores function,op
expect "stores" "$(said stores groups | awk '{print $1, $2, $3}')" "lab_fire_target STORE 120"
