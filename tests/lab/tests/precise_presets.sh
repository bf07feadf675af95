# Each preset by its name: on Intel the driver accepts its events as precise (its constraints refuse wrong ones), each overflow of them
# is a sample; on AMD the filter of each preset tells its ops by their data source.
# generations: every
# timeout: 600
. "$LAB_DIR/guest/lib.sh"
exact

# One preset with one event: so many samples, as precise as at LEVEL.
preset() { # PRESET SAMPLES LEVEL FIRE-LINE
	local name=$1 samples=$2 level=$3
	precise_record "$name" -e "$name" -c 1000 --precise require -- "$FIRE" -e "$4"
	precise_report "$name" function
	ledger_of "$name" "$samples"
	expect "$name: functions" "$(said "$name" groups)" "lab_fire_target $samples $((samples * 1000)) 0 0"
	expect "$name: precise" "$(said "$name" trust precise), $(said "$name" trust granted)" "true, $level"
}

# The samples of each event of a capture: NAME KEYS
samples_of_each() {
	"$PRECISE" report -i "$1.parquet" --by "$2" --json | python3 -c '
import json, sys
print(*(sum(group["measures"]["count"] for group in event["groups"]) for event in json.load(sys.stdin)["events"]))'
}

if [ "$LAB_VENDOR" = intel ]; then
	branches=0xc5
	[ "$LAB_PMU" != skl ] || branches=0x4c5
	for pair in l3-miss=0x20d1 l2-miss=0x10d1 locks=0x21d0 branches=$branches fetch=0x1c6; do
		preset "${pair%%=*}" 130 3 "event event=${pair##*=} ip=target count=130567"
	done
	case $LAB_PMU in
	skl) preset ops 130 3 'event event=0x1c0 ip=target count=130567' ;;
	icl) preset ops 130 3 'instructions ip=target count=130567' ;;
	# Level 3 is general counter 0 there, and PREC_DIST is on the fixed counter of instructions.
	*) preset ops 130 2 'instructions ip=target count=130567' ;;
	esac

	# Two events each.
	for pair in tlb=0x11d0,0x12d0 splits=0x41d0,0x42d0; do
		name=${pair%%=*} both=${pair##*=}
		precise_record "$name" -e "$name" -c 1000 --precise require -- "$FIRE" \
			-e "event event=${both%%,*} ip=target count=110567" -e "event event=${both##*,} ip=target count=120567"
		expect "$name: samples of each" "$(samples_of_each "$name" function)" "110 120"
	done

	# By the names that perf uses, and at the level that is asked for.
	precise_record named -e mem_load_retired.l1_miss:pp -c 1000 --precise require -- "$FIRE" \
		-e 'event event=0x8d1 ip=target count=130567'
	precise_report named function
	ledger_of named 130
	expect "named: granted" "$(said named trust granted)" 2

	# The front end's register has bits that the driver refuses: those of the tables are not among them.
	RECORD_STATUS=66 precise_record wrong -e cpu/event=0xc6,umask=0x1,config1=0x800000/pp -c 1000 -- "$FIRE" -e 'sleep ms=1'

	# Loads and stores together.
	precise_record mem -e mem -c 1000 --precise require --by ip,address,source --granule 1 -- "$FIRE" \
		-e 'load ip=target addr=0x7f0000100000 stride=64 latency=300 source=0x3 count=120' \
		-e 'store ip=target addr=0x7f0000200000 stride=8 source=1 count=110'
	expect "mem: samples of each" "$(samples_of_each mem op)" "120 110"
	exit 0
fi

# AMD: one script, and each preset takes its ops of it.
cat >ops.fire <<-EOF
	op load ip=target addr=0x7f0000100000 stride=64 count=101
	op load dc-miss ip=target addr=0x7f0000200000 stride=64 latency=20 count=103
	op load ip=target addr=0x7f0000300000 stride=64 latency=50 source=1 count=107
	op load ip=target addr=0x7f0000400000 stride=64 latency=321 source=3 count=109
	op load remote ip=target addr=0x7f0000500000 stride=64 latency=400 source=3 count=113
	op load tlb-miss ip=target addr=0x7f0000600000 stride=64 count=127
	op load tlb-miss tlb2-miss ip=target addr=0x7f0000700000 stride=64 count=131
	op store tlb-miss tlb2-miss ip=target addr=0x7f0000800000 stride=64 count=137
	op load locked ip=target addr=0x7f0000900000 stride=64 count=139
	op store ip=target addr=0x7f0000a00000 stride=64 count=149
	op store misaligned ip=target addr=0x7f0000b0003e stride=64 count=157
	op load misaligned ip=target addr=0x7f0000c0003e stride=64 count=163
	op ip=target count=151
EOF
all=$((101 + 103 + 107 + 109 + 113 + 127 + 131 + 137 + 139 + 149 + 157 + 163 + 151))
stores=$((137 + 149 + 157))
loads=$((all - stores - 151))
from_l3=107
# Before Zen 4, source 1 is reserved, 2 a cache of the node.
if [ "$LAB_PMU" = zen3 ]; then sed -i 's/source=1 /source=2 /' ops.fire; fi

fires() { "$FIRE" --wait 60 ops.fire >fired.txt; }

for pair in "loads $loads" "stores $stores" "mem $((loads + stores))" "l3-miss $((109 + 113))" "l2-miss $((from_l3 + 109 + 113))" \
	"tlb $((131 + 137))" "locks 139" "splits $((157 + 163))" "ops $all"; do
	read -r name wanted <<<"$pair"
	precise_whole "$name" -C 0 -e "$name" -c 65536 --by ip,address,source --granule 1
	precise_report "$name" function
	ledger_of "$name" "$all"
	expect "$name" "$(said "$name" groups | awk '{print $1, $2}')" "lab_fire_target $wanted"
	expect "$name: rejected" "$(said "$name" rejected | awk '{sum += $NF} END {print sum + 0}')" $((all - wanted))
done
precise_report l3-miss remote
expect "l3-miss: from another node" "$(said l3-miss groups | grep -i '^true' | awk '{print $2}')" 113

if [ "$LAB_PMU" = zen3 ]; then
	RECORD_STATUS=66 precise_record hardware -e loads --l3-miss-only -C 0 --duration 1s
	grep -q 'Zen 4 and later' hardware.txt || fail "nothing says which CPUs can"
else
	# In hardware: nothing but L3 misses reaches the program.
	precise_whole hardware -C 0 -e loads --l3-miss-only -c 65536 --by ip,address,source --granule 1
	precise_report hardware function
	said hardware findings | grep -q 'rates cannot be derived' || fail "nothing says that the hardware's filter skews"
	expect "hardware: seen" "$(said hardware ledger seen)" $((109 + 113))
fi

# Zen 5 filters by latency in hardware, and Linux uses it since 6.15. Before, the program drops the loads, and that is said.
if [ "$LAB_PMU" = zen5 ]; then
	precise_whole slow -C 0 -e loads --ldlat 300 -c 65536 --by ip,latency
	expect "slow: kept" "$(said slow ledger aggregated)" $((109 + 113))
	if [ -e /sys/bus/event_source/devices/ibs_op/format/ldlat ]; then
		expect "slow: seen" "$(said slow ledger seen)" $((109 + 113))
	else
		account slow "$all" $((109 + 113))
		said slow findings | grep -q 'the program drops loads below' || fail "nothing says that no hardware filters"
	fi
fi
