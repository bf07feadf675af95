# --overhead where a sample is a record of the PMU: the kernel's drivers take the new periods (primes for PEBS, 16 times a prime for IBS), and
# each sample stands for as many events as its own period says, so that all of them stand for what the event itself counted.
# pmu: skl zen4
# kernel: 6.12
# timeout: 180
. "$LAB_DIR/guest/lib.sh"
timed 10

if [ "$LAB_VENDOR" = intel ]; then event=loads period=50021; else event=ibs_op// period=50032; fi
taskset -c 0 bash -c 'while :; do :; done' &
spinning=$!
precise_record governed -C 0 -e $event -c $period --overhead 2% --by ip --epoch 250ms --duration 8s --json
kill $spinning
mv governed.txt governed.json
expect "the ledger closes" "$(said governed trust closes)" true
seen=$(said governed ledger seen) counted=$(said governed trust event_count)
python3 - governed.json "$LAB_VENDOR" $period "$seen" "$counted" <<-'EOS'
	import json, sys
	name, vendor = sys.argv[1:3]
	first, seen, counted = map(int, sys.argv[3:])
	text = open(name).read()
	event = json.loads(text[text.index("{"):])["reports"][0]["events"][0]
	periods = [change["period"] for change in event["rates"]]
	estimate = event["estimate"]
	print(f"periods: {periods}\n{seen} samples stand for {estimate}; the event counted {counted}")
	def prime(n):
	    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))
	assert len(periods) >= 2 and periods[0] == first, "nothing was governed"
	for period in periods[1:]:
	    ok = period == first or (prime(period) if vendor == "intel" else period % 16 == 0 and prime(period // 16))
	    assert ok, f"{period} is no period that this PMU should have"
	assert seen * first < 0.95 * counted, "nothing would be wrong without weights"
	# The emulated unit loses up to a tenth of the samples on a busy host, whatever the period.
	assert estimate["low"] <= counted and 0.9 * counted <= estimate["high"], f"{counted} is outside"
	assert 0.5 * counted < estimate["value"] < 1.1 * counted, f"{counted} is far away"
EOS
