# The views of the front end: each number of fetch, branches and derived is the script's; kinds of branches are those of the code.
# pmu: skl zen4
# kernel: 6.12
# timeout: 120
. "$LAB_DIR/guest/lib.sh"
exact

view() { # VIEW NAME: lines of separated values
	"$PRECISE" "$1" -i "$2.parquet"
	"$PRECISE" "$1" -i "$2.parquet" -x'|' >"$2.csv"
}

if [ "$LAB_VENDOR" = intel ]; then
	# Branch, kind, samples; nothing else is known.
	precise_record branches -e branches -c 1000 --precise require -- "$FIRE" \
		-e 'event event=0x4c5 ip=branches count=150567' -e 'event event=0x4c5 ip=branches+4 count=120433'
	view branches branches
	awk -F'|' 'NR > 1 {print $2, $5, $6, $8, $9 $13}' branches.csv >found
	cat >wanted <<-EOF
		lab_fire_branches+0x0 conditional +0x4 150 
		lab_fire_branches+0x4 indirect call  121 
	EOF
	diff found wanted || fail "the branches are not what was fired"

	# Each event is a column: one sample per 1,000 of each. The emulated counters know an event by select and unit mask, which
	# all events of the front end share, so one at a time.
	precise_record fetch -e frontend_retired.l1i_miss -c 1000 --precise require -- "$FIRE" -e 'event event=0x1c6 ip=target count=130567'
	view fetch fetch
	"$PRECISE" fetch -i fetch.parquet --json | python3 -c '
import json, sys
facts = json.load(sys.stdin)["sections"][0]["facts"]
print(*(f["fact"] + "=" + str(f["samples"]) for f in facts if f["samples"] is not None), sum(f["samples"] is None for f in facts))' >facts
	expect "facts, and how many are not known" "$(cat facts)" "ic-miss=130 10"
	status=0
	"$PRECISE" derived -i fetch.parquet 2>refused || status=$?
	expect "derived events of a counter" "$status" 2
	grep -q "counts what AMD's IBS reports, and the capture is of a CPU without it" refused || fail "a missing event is asked for: $(cat refused)"
	exit 0
fi

# IbsOpData: return 34, taken 35, mispredicted 36, branch 37.
op() { printf '0x%x' $(($1 << 34)); }
cat >all.fire <<-EOF
	op data=$(op 0xe) target=0x7f0000100000 ip=branches count=90
	op data=$(op 0x8) ip=branches count=210
	op data=$(op 0xe) target=0x7f0000200000 ip=branches+2 count=30
	op data=$(op 0xa) target=0x7f0000300000 ip=branches+2 count=10
	op data=$(op 0xb) target=0x7f0000400000 ip=branches+6 count=100
	op load dc-miss l2-miss remote ip=target addr=0x7f0000500000 latency=400 source=3 count=70
	op load dc-miss ip=target addr=0x7f0000600000 latency=20 count=40
	op store locked misaligned ip=target addr=0x7f0000700000 count=50
	op ip=target count=100
	fetch complete ip=target latency=5 ctl=0x10000000000000 count=300
	fetch complete ic-miss ip=branches latency=60 count=80
	fetch tlb-miss tlb2-miss ip=branches latency=90 count=20
	fetch ip=target latency=2 count=100
EOF
grep '^op' all.fire >ops.fire
fires() { "$FIRE" --wait 60 "$script.fire"; }

# One run of fetches and ops has the facts of both views, and all of CodeAnalyst's.
script=all
precise_whole both -C 0 -e fetch,ops -c 65536 --by ip,latency,outcome
view fetch both
"$PRECISE" fetch -i both.parquet --json | python3 -c '
import json, sys
facts = json.load(sys.stdin)["sections"][0]["facts"]
print(*(f["fact"] + "=" + str(f["samples"]) for f in facts))' >facts
expect "fetches" "$(cat facts)" "attempted=400 completed=380 aborted=20 killed=100 waited=100 op-cache-miss=0 ic-miss=80 l2-miss=0 l3-miss=0 itlb-miss=20 itlb-walk=20"
expect "who waited most" "$(awk -F'|' 'NR == 2 {print $2, $6, $7}' both.csv)" "lab_fire_branches 66.000 100"

view derived both
derived() { awk -F'|' -v short="$1" '$3 == short {print $6}' both.csv; }
while read -r wanted short; do
	expect "$short" "$(derived "$short")" "$wanted"
done <<-EOF
	500 IBS fetch
	100 IBS fetch killed
	400 IBS fetch attempt
	80 IBS IC miss
	20 IBS ITLB L1M L2M
	$((300 * 5 + 80 * 60 + 20 * 90)) IBS fetch lat
	700 IBS all ops
	440 IBS BR
	120 IBS misp BR
	230 IBS taken BR
	120 IBS misp taken BR
	100 IBS RET
	160 IBS load/store
	110 IBS load
	50 IBS store
	110 IBS DC miss
	50 IBS misalign acc
	50 IBS locked op
	$((70 * 400 + 40 * 20)) IBS DC miss lat
	70 IBS NB remote DRAM
	0 IBS NB local
	$((70 * 400)) IBS NB remote lat
EOF
expect "a resync op" "$(derived 'IBS resync')" ""

# Branch, kind, target, other targets, branches, mispredicted.
script=ops
precise_whole branches -C 0 -e branches -c 65536 --by ip,address,outcome --granule 1
view branches branches
awk -F'|' 'NR > 1 {print $2, $5, $6, $7, $8, $12}' branches.csv >found
cat >wanted <<-EOF
	lab_fire_branches+0x0 conditional +0x4 0 300 90
	lab_fire_branches+0x2 indirect jump 0x7f0000200000 1 40 30
	lab_fire_branches+0x6 return 0x7f0000400000 0 100 0
EOF
diff found wanted || fail "the branches are not what was fired"
