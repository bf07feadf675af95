# What loads wait for, and how far samples skid: at known instructions of a real program, each number is the script's.
# pmu: skl zen4
# kernel: 6.12
# timeout: 180
. "$LAB_DIR/guest/lib.sh"
exact

chase=$LAB_WORKLOADS/chase
at() { # FUNCTION PATTERN: where in the program the instruction is
	objdump -d --no-show-raw-insn --disassemble="$1" "$chase" | awk -v pattern="$2" '$0 ~ pattern && /^ / {sub(":", "", $1); print "0x" $1; exit}'
}
next=$(at list 'mov +\\(%rdi\\),%rdi')
value=$(at list 'add +0x10000\\(%rdi\\)')
data=$(at gather 'add +\\(.*,8\\)')
index=$(at gather 'mov +\\(')
element=$(at scan 'add +\\(')
end=$(at gather 'jne')
echo "list $next $value, gather $data $index $end, scan $element"
fires() { "$FIRE" --wait 60 "$now.fire"; }

load() { # PLACE LATENCY COUNT
	if [ "$LAB_VENDOR" = intel ]; then
		echo "load ip=$chase+$1 addr=0x7f0000200000 stride=64 latency=$2 source=0x1b count=$3"
	else
		echo "op load ip=$chase+$1 addr=0x7f0000200000 stride=64 latency=$2 source=3 count=$3"
	fi
}
now=loads
{
	load "$next" 500 200
	load "$value" 100 200
	load "$data" 100 150
	load "$index" 50 100
	load "$element" 60 150
} >loads.fire
if [ "$LAB_VENDOR" = intel ]; then period=1000; else period=65536; fi
precise_whole loads -C 0 -e loads -c $period --by ip,source,latency
"$PRECISE" chase -i loads.parquet | tee loads.said
"$PRECISE" chase -i loads.parquet -x'|' | awk -F'|' 'NR > 1 {print $2, $3, $4, $11, $18}' | sort >loads.kinds
sort >loads.wanted <<-EOF
	behind-chase  list 200 100.000
	chase 1 list 200 500.000
	gather  gather 150 100.000
	independent  gather 100 50.000
	independent  scan 150 60.000
EOF
diff loads.kinds loads.wanted || fail "chase is not what was fired"
# (200 × 500 + 200 × 100) of 149,000 cycles.
grep -q '^LATENCY-BOUND: 80.5% of the latency' loads.said || fail "nothing says that it is latency-bound"

# Only Intel's driver has plain cycles in the lab beside precise ones.
[ "$LAB_VENDOR" = intel ] || exit 0
# Of 1000 precise samples, 600 are at the data's load and 400 in scan(). Of 1000 plain ones, 450 come out at the end of the round,
# 150 in another function.
now=skid
cat >skid.fire <<-EOF
	event event=0x1c0 ip=$chase+$data count=600000
	event event=0x1c0 ip=$chase+$element count=400000
	cycles ip=$chase+$end count=450000
	cycles ip=$chase+$value count=150000
	cycles ip=$chase+$element count=400000
EOF
precise_whole skid -C 0 -e skid -c 1000 --by ip
"$PRECISE" skid -i skid.parquet | tee skid.said
"$PRECISE" skid -i skid.parquet --json >skid.json
between_instructions=$(objdump -d --no-show-raw-insn --disassemble=gather "$chase" | awk -v from="${data#0x}:" -v to="${end#0x}:" '$1 == from {n = 0; on = 1} on && $1 == to {print n; exit} on {n++}')
python3 - "$between_instructions" <<-'EOF'
	import json, sys
	pair, = json.load(open("skid.json"))["pairs"]
	assert pair["samples"] == [1000, 1000], pair["samples"]
	share = lambda d: round(d["value"], 6)
	assert share(pair["wrong_function"]) == 0.15, pair["wrong_function"]
	# The end of the round is the line of the loop.
	assert share(pair["wrong_line"]) == 0.6, pair["wrong_line"]
	assert {f["function"]: share(f["excess"]) for f in pair["wrong_functions"]} == {"list": 0.15, "gather": -0.15}
	lines = sorted(share(line["excess"]) for line in pair["wrong_lines"])
	assert lines == [-0.6, 0.15, 0.45], lines
	functions = {f["function"]: f for f in pair["functions"]}
	assert share(functions["gather"]["instructions"]["shift"]) == int(sys.argv[1]), functions["gather"]
	assert functions["scan"]["instructions"]["least"] == 0, functions["scan"]
	assert pair["precise"]["trust"]["precise"] and not pair["plain"]["trust"]["precise"]
EOF
grep -q 'At least 60.0%' skid.said || fail "nothing says how many lines are wrong"
