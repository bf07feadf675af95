# Call chains of precise samples: the leaf is the precise instruction, whatever code the interrupt found, and no sample is without a chain.
# pmu: skl zen4
# timeout: 60
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000 load='load source=0x7'
else
	event=ibs_op// period=65536 load='op load source=1'
fi
# Two services, of which one is slower.
fires() {
	"$FIRE" --wait 60 -e "$load ip=target addr=heap latency=100 count=120" -e "$load ip=target+4 addr=heap latency=700 count=40" >fired.txt
	# The first name of the kernel takes seconds on an emulated CPU, and a run that ends waits 3 s for names.
	sleep 6
}
precise_whole chains -C 0 -e $event -c $period -g
account chains 160
"$PRECISE" report -i chains.parquet -g lab_fire_target --json >graph.json
"$PRECISE" report -i chains.parquet -g lab_fire_target
grep -q stack chains.json && grep 'without chain' chains.json && fail "samples without a chain"

# Each sample's leaf is the scripted instruction, below it the process and above it what the kernel unwound: the call that fired it.
for by in samples latency; do
	"$PRECISE" flamegraph -i chains.parquet --folded --by $by | tee $by.folded
	expect "leaves by $by" "$(grep -c ';lab_fire_target [0-9]*$' $by.folded)" "$(wc -l <$by.folded)"
	grep -q ';.*;lab_fire_target ' $by.folded || fail "no callers"
done
sum() { awk '{ sum += $NF } END { print sum }' "$1"; }
expect "samples" "$(sum samples.folded)" 160
expect "cycles of latency" "$(sum latency.folded)" $((120 * 100 + 40 * 700))
"$PRECISE" flamegraph -i chains.parquet --by latency -o "$LAB_OUT/chains.svg"
