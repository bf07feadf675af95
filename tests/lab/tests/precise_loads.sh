# precise on PEBS loads and stores: the capture is the script, cell by cell, to the last sample.
# pmu: intel
# generations: every
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

# Samples of known place, address, latency and data source; those at or below the threshold of 30 make no record.
cat >loads.fire <<-EOF
	load ip=target addr=data stride=8 latency=31 source=0x1 count=100
	load ip=target+4 addr=0x7f0000100000 stride=64 latency=45 source=0x3 count=50
	load ip=target addr=0x7f0000200000 stride=64 latency=200 source=0x7 count=240
	load ip=target addr=0x7f0000300000 stride=64 latency=700 source=0x1b count=30
	load ip=target addr=0x7f0000400000 stride=0 latency=60 source=0x23 count=10
	load ip=target addr=0x7f0000500000 latency=20 source=0x1 count=25
EOF
sum=$((100 * 31 + 50 * 45 + 240 * 200 + 30 * 700 + 10 * 60))
all() { precise_record "$1" "${@:2}" -c 1000 --by ip,address,source,latency --granule 1 -- "$FIRE" loads.fire; }

for event in loads cpu/event=0xcd,umask=0x1,ldlat=30/pp; do
	name=${event%%/*}
	all "$name" -e "$event" --precise require
	precise_report "$name" function
	expect "lab-fire" "$(grep fired "$name.txt")" "fired 455 taken 430"
	ledger_of "$name" 430
	expect "functions" "$(said "$name" groups)" "lab_fire_target 430 430000 $sum 700"
	expect "precise" "$(said "$name" trust precise), $(said "$name" trust granted)" "true, 2"
done

precise_report loads level,snoop,tlb,op
said loads groups | sort >sources
cat sources
sort >sources.wanted <<-EOF
	L1_hit None L1_or_L2_hit LOAD 100 100000 3100 31
	L2_hit None L1_or_L2_hit LOAD 60 60000 2850 60
	L3_hit HitM L1_or_L2_hit LOAD 240 240000 48000 200
	Remote_RAM_hit None L2_miss LOAD 30 30000 21000 700
EOF
diff sources sources.wanted || fail "the data sources are not what was fired"
precise_report loads locked
expect "locked" "$(said loads groups | grep -i '^true')" "True 10 10000 600 60"
precise_report loads remote
expect "remote" "$(said loads groups | grep -i '^true')" "True 30 30000 21000 700"
precise_report loads variable
expect "loads of the variable" "$(said loads groups | grep LAB_FIRE_DATA)" "LAB_FIRE_DATA 100 100000 3100 31"

# Each address of its own, as many times as fired there.
precise_report loads address
said loads groups | grep '^0x7f0000' | sort >addresses
{
	for ((i = 0; i < 50; i++)); do printf '0x%x 1 1000 45 45\n' $((0x7f0000100000 + 64 * i)); done
	for ((i = 0; i < 240; i++)); do printf '0x%x 1 1000 200 200\n' $((0x7f0000200000 + 64 * i)); done
	for ((i = 0; i < 30; i++)); do printf '0x%x 1 1000 700 700\n' $((0x7f0000300000 + 64 * i)); done
	echo '0x7f0000400000 10 10000 600 60'
} | sort >addresses.wanted
diff addresses addresses.wanted || fail "the addresses are not what was fired"
expect "different addresses" "$(said loads groups | wc -l)" 421
precise_report loads ip
expect "instructions" "$(said loads groups | awk '{print $2}' | sort -n | tr '\n' ' ')" "50 380 "

# A filter has both sides, and each clause says what it was the first to reject.
all filtered -e loads --min-latency 100 --filter 'mem_lvl == l3 && addr in 0x7f0000200000..0x7f0000201e00'
precise_report filtered address
said filtered rejected
expect "seen" "$(said filtered ledger seen)" 430
ledger_closes filtered
expect "aggregated" "$(said filtered ledger aggregated)" 120
expect "rejected by latency" "$(said filtered rejected | grep -i 'latency\|weight' | grep -o '[0-9]*$')" 160
expect "rejected by level" "$(said filtered rejected | grep mem_lvl | grep -o '[0-9]*$')" 30
expect "rejected by address" "$(said filtered rejected | grep addr | grep -o '[0-9]*$')" 120
expect "kept addresses" "$(said filtered groups | wc -l)" 120

# Every record reaches the program, with a switch of context after every fifth: none in a batch that goes past it.
for ((i = 0; i < 200; i++)); do
	printf 'load ip=target addr=heap+%d latency=300 source=0x3 count=5\nswitch count=1\n' $((i * 64))
done >switches.fire
precise_record switches -e loads -c 1000 -- "$FIRE" switches.fire
precise_report switches function
ledger_of switches 1000
expect "loads between switches" "$(said switches groups)" "lab_fire_target 1000 1000000 300000 300"

# Stores.
precise_record stores -e stores -c 1000 --by ip,address,source --granule 1 -- "$FIRE" \
	-e 'store ip=target addr=0x7f0000100000 stride=8 source=1 count=200'
precise_report stores function,op
ledger_of stores 200
expect "stores" "$(said stores groups | awk '{print $1, $2, $3}')" "lab_fire_target STORE 200"
precise_report stores address
expect "addresses of stores" "$(said stores groups | wc -l)" 200
