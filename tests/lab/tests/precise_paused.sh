# The guest is stopped for seconds in the middle of a run, as by a host that has other things to do: its clocks jump. What was sampled is
# all there and when it was; what a timer could not take meanwhile is missing by name.
# pmu: skl zen4
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000 load='load ip=target addr=heap source=0x7'
else
	event=ibs_op// period=65536 load='op load ip=target addr=heap source=1'
fi
fires() {
	"$FIRE" --wait 60 -e "$load latency=50 count=120" -e 'sleep ms=1500' && pause_guest 4 &&
		"$FIRE" -e 'sleep ms=1500' -e "$load latency=800 count=130"
}
precise_whole jump -C 0 -e $event -c $period --by latency --epoch 500ms
account jump 250
"$PRECISE" heatmap -i jump.parquet --axis latency --json >map.json
read -r before after longest < <(python3 - map.json <<-'EOF'
	import json, sys
	map = json.load(open(sys.argv[1]))
	cells = sorted(map["panels"][0]["cells"])
	assert [samples for _, _, samples in cells] == [120, 130], cells
	column = lambda cell: map["columns"][cell[0]]
	print(column(cells[0])["end_ns"] // 10**6, column(cells[1])["start_ns"] // 10**6,
	      max(c["end_ns"] - c["start_ns"] for c in map["columns"]) // 10**6)
EOF
)
between "milliseconds between what was before the pause and what was after it" $((after - before)) 4500 12000
between "the epoch of the pause, in milliseconds" "$longest" 3900 6000
grep -q 'a longer column collects more samples' map.json || fail "nothing says that columns are not equally long"

# A timer, 100 times a second: what it could not take while the CPU stood still is said to be missing.
fires() {
	taskset -c 0 bash -c 'while :; do :; done' &
	local busy=$!
	until find "/proc/$recorder/fd" -lname '*perf_event*' 2>/dev/null | grep -q .; do sleep 0.2; done
	sleep 1
	pause_guest 4
	sleep 1
	kill $busy
}
precise_whole clock -C 0 -e cpu-clock -c 10000000 --precise off --by cpu --epoch 500ms
seen=$(said clock ledger seen) due=$(said clock trust expected)
echo "seen $seen, due $due"
between "samples of the timer that are missing" $((due - seen)) 360 600
expect "named in the ledger" "$(said clock ledger 'missed')" $((due - seen))
said clock findings | grep -q 'some samples never reached the program' || fail "no finding says that samples are missing"
