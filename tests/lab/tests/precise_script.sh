# precise script on PEBS and IBS: each line is a sample that was fired, in the order in which they were fired, to the last field.
# pmu: skl spr@6.12 zen4
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

# Streams what lab-fire fires, for as long as it runs: NAME SCRIPT ARGUMENT…; the objects are in NAME.json, the account in NAME.txt.
stream() {
	local name=$1 script=$2 status=0
	shift 2
	if [ "$LAB_VENDOR" = amd ] && [ "$LAB_KERNEL" = 6.1 ]; then
		# This kernel samples IBS for whole CPUs only.
		fires() { "$FIRE" --wait 60 "$script" >"$name.fired"; }
		while_firing "$name.json" "$name.txt" "$PRECISE" script --json -C 0 --duration 100s "$@" || status=$?
	else
		# The command writes to the standard output as well: its own goes elsewhere.
		# shellcheck disable=SC2016 # for the inner shell
		"$PRECISE" script --json "$@" -- sh -c 'exec "$0" "$1" >"$2"' "$FIRE" "$script" "$name.fired" \
			>"$name.json" 2>"$name.txt" || status=$?
	fi
	cat "$name.txt"
	[ "$status" = 0 ] || fail "script $name ended with $status"
	grep -q 'Every sample that the program saw is in one of these rows' "$name.txt" || fail "the account of $name does not close"
}

# The number of a row of an account: NAME ROW
account() { awk -v row="$2" '$3 == row { sub(",", "", $2); sum += $2 } END { print sum + 0 }' "$1.txt"; }

# One line for each object of NAME.json, with the fields that the hardware gave.
lines() { # NAME
	python3 -c '
import json, sys
for line in sys.stdin:
    s = json.loads(line)
    words = ["%s+%s" % (s["symbol"], s["symbol_offset"])] + [s[key] for key in ("address", "latency", "op", "level", "snoop", "tlb", "locked", "remote")]
    print(*(str(word).replace(" ", "_") for word in words))
' <"$1.json"
}

# COUNT times a line, its address (%x) moving by STRIDE from ADDRESS.
expected() { # COUNT ADDRESS STRIDE FORMAT
	local i
	for ((i = 0; i < $1; i++)); do
		# shellcheck disable=SC2059 # the format is the point
		printf "lab_fire_target+$4\n" $(($2 + $3 * i))
	done
}

if [ "$LAB_VENDOR" = intel ]; then
	cat >script.fire <<-EOF
		load ip=target addr=0x7f0000000000 stride=8 latency=31 source=0x1 count=100
		load ip=target+4 addr=0x7f0000100000 stride=64 latency=45 source=0x3 count=50
		load ip=target addr=0x7f0000200000 stride=64 latency=200 source=0x7 count=240
		load ip=target addr=0x7f0000300000 stride=64 latency=700 source=0x1b count=30
		load ip=target addr=0x7f0000400000 stride=0 latency=60 source=0x23 count=10
		load ip=target addr=0x7f0000500000 latency=20 source=0x1 count=25
	EOF
	{
		expected 100 0x7f0000000000 8 '0 0x%x 31 LOAD L1_hit None L1_or_L2_hit False False'
		expected 50 0x7f0000100000 64 '4 0x%x 45 LOAD L2_hit None L1_or_L2_hit False False'
		expected 240 0x7f0000200000 64 '0 0x%x 200 LOAD L3_hit HitM L1_or_L2_hit False False'
		expected 30 0x7f0000300000 64 '0 0x%x 700 LOAD Remote_RAM_hit None L2_miss False True'
		expected 10 0x7f0000400000 0 '0 0x%x 60 LOAD L2_hit None L1_or_L2_hit True False'
	} >wanted
	stream all script.fire -e loads -c 1000 --precise require
	expect "written" "$(account all written)" 430
	expect "lab-fire" "$(cat all.fired)" "fired 455 taken 430"
	slow='latency > 100 && mem_lvl == l3'
else
	cat >script.fire <<-EOF
		op load ip=target addr=0x7f0000100000 stride=64 count=100
		op load dc-miss ip=target+4 addr=0x7f0000200000 stride=64 latency=20 count=50
		op load ip=target addr=0x7f0000300000 stride=64 latency=321 source=3 count=140
		op load tlb-miss tlb2-miss ip=target addr=0x7f0000400000 stride=64 latency=700 source=3 count=30
		op store ip=target addr=0x7f0000500000 stride=64 count=120
	EOF
	{
		expected 100 0x7f0000100000 64 '0 0x%x None LOAD L1_hit'
		expected 50 0x7f0000200000 64 '4 0x%x 20 LOAD L2_hit'
		expected 140 0x7f0000300000 64 '0 0x%x 321 LOAD RAM_hit'
		expected 30 0x7f0000400000 64 '0 0x%x 700 LOAD RAM_hit'
	} >wanted
	stream all script.fire -e loads -c 65536
	expect "written" "$(account all written)" 320
	expect "rejected, as no loads" "$(account all rejected)" 120
	slow='latency > 400'
fi
lines all >got
# What IBS says of snoop and TLB differs with the kernel; precise_ibs.sh compares it.
[ "$LAB_VENDOR" = intel ] || { cut -d' ' -f1-5 got >got.short && mv got.short got; }
diff got wanted || fail "the lines are not what was fired, in that order"

# Each object says all that is known of every sample.
python3 - all.json "$LAB_VENDOR" <<-'EOF'
	import json, sys
	samples = [json.loads(line) for line in open(sys.argv[1])]
	times = [s["time"] for s in samples]
	assert times == sorted(times) and len(set(times)) > 1, "not in the order of time"
	period = 1000 if sys.argv[2] == "intel" else 65536
	for s in samples:
	    assert s["cpu"] == 0 and s["comm"] == "lab-fire" and s["pid"] == s["tid"] > 0, s
	    assert s["event"] and s["period"] == period, s
	    assert s["exact"] is True and s["mode"] == "user", s
	    assert int(s["ip"], 16) > 0x1000 and int(s["data_src"], 16) > 0, s
	    if sys.argv[2] == "amd":
	        # Capabilities, then registers as the driver read them: the data address is one of them.
	        words = [int(word, 16) for word in s["raw"].split(",")]
	        assert words[0] != 0 and int(s["address"], 16) in words[1:], s
	        retire = f"tag to retire {words[3] >> 16 & 0xffff}; completion to retire {words[3] & 0xffff}"
	        assert s["registers"].startswith(retire), s
	print(len(samples), "objects")
EOF

# A filter in the kernel: what does not pass makes no line and costs no room in the ring.
stream slow script.fire -e loads -c $([ "$LAB_VENDOR" = intel ] && echo 1000 || echo 65536) --filter "$slow"
lines slow | awk '{ print $3 }' | sort | uniq -c | tr -s ' ' >slow.got
[ "$LAB_VENDOR" = intel ] && echo ' 240 200' >slow.wanted || echo ' 30 700' >slow.wanted
diff slow.got slow.wanted || fail "the filter kept something else"
expect "lost" "$(account slow lost), $(account all lost)" "0, 0"

# A ring of one page: what it has no room for is counted, and every line that there is is one that was fired.
for ((i = 0; i < 30; i++)); do cat script.fire; done >many.fire
stream tiny many.fire -e loads -c $([ "$LAB_VENDOR" = intel ] && echo 1000 || echo 65536) --ring-pages 1
expect "written and lost" "$(($(account tiny written) + $(account tiny lost)))" $((30 * $(wc -l <wanted)))
lines tiny | cut -d' ' -f1-5 | sort -u >tiny.got
cut -d' ' -f1-5 wanted | sort -u >tiny.wanted
[ -z "$(comm -23 tiny.got tiny.wanted)" ] || fail "lines that nobody fired"
