# precise serve with precise samples: the latencies and levels that were fired in each cgroup are on the page, in the buckets that they
# belong to, each sample as often as its period; and they are still there, and more, at the next scrape.
# pmu: skl zen4
# kernel: 6.12
# timeout: 60
. "$LAB_DIR/guest/lib.sh"
exact

shop=/sys/fs/cgroup/shop
mkdir -p $shop/web $shop/db
if [ "$LAB_VENDOR" = intel ]; then
	period=1000 kind=load l3=0x4 ram=0x1a
else
	period=65536 kind='op load' l3=1 ram=3
fi
fire() { # CGROUP LATENCY SOURCE COUNT
	"$FIRE" --wait 60 --cgroup "$shop/$1" -e "$kind ip=target addr=heap source=$3 latency=$2 count=$4"
}
# Scrapes until the page has so many samples, and prints it.
page() { # SAMPLES
	python3 - "$1" <<-'EOS'
		import sys, time, urllib.request
		for _ in range(600):
		    page = urllib.request.urlopen("http://127.0.0.1:7732/metrics").read().decode()
		    rows = [line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("precise_samples_total")]
		    if sum(float(value) for _, value in rows) >= int(sys.argv[1]):
		        break
		    time.sleep(0.1)
		print(page, end="")
	EOS
}
value() { # METRIC LABEL-PATTERN...: of the one series that has them all
	local lines metric=$1 pattern
	lines=$(grep "^$metric{" page)
	for pattern in "${@:2}"; do lines=$(grep -F "$pattern" <<<"$lines" || true); done
	[ "$(wc -l <<<"$lines")" = 1 ] || fail "$* are not one series: $lines"
	printf '%.0f\n' "${lines##* }"
}

"$PRECISE" serve -a -C 0 -e loads -c $period --epoch 100ms --by cgroup,level 2>served.txt &
serving=$!
fire web 200 $l3 500
fire web 3000 $ram 100
fire db 80 $l3 300
page 900 >page
tail -1 page
level() { if [ "$1" = $l3 ]; then echo 'level="L3 hit"'; else grep -o 'level="[^"]*RAM[^"]*"' page | head -1; fi; }
bucket() { value precise_latency_cycles_bucket "/shop/$1\"" "$(level "$2")" "le=\"$3.0\""; }
for series in "web $l3 500" "web $ram 100" "db $l3 300"; do
	read -r cgroup source count <<<"$series"
	expect "samples of $cgroup, $(level "$source")" "$(value precise_samples_total "/shop/$cgroup\"" "$(level "$source")")" "$count"
	expect "events of $cgroup, $(level "$source")" \
		"$(value precise_events_total "/shop/$cgroup\"" "$(level "$source")")" $((count * period))
done
expect "web at most 191 cycles from the L3 cache" "$(bucket web $l3 191)" 0
expect "at most 255" "$(bucket web $l3 255)" $((500 * period))
expect "at most 2,047 from memory" "$(bucket web $ram 2047)" 0
expect "at most 3,071" "$(bucket web $ram 3071)" $((100 * period))
expect "db at most 63" "$(bucket db $l3 63)" 0
expect "at most 95" "$(bucket db $l3 95)" $((300 * period))
expect "sum of web's latencies from memory" \
	"$(value precise_latency_cycles_sum '/shop/web"' "$(level $ram)")" $((3000 * 100 * period))
expect "aggregated samples" "$(value precise_ledger_samples_total 'fate="aggregated"')" 900
expect "unaccounted samples" "$(value precise_unaccounted_samples loads)" 0
grep "^precise_event_info" page
expect "exact addresses" "$(grep -c "^precise_event_info{event=\"[^\"]*loads\".*exact=\"yes\"" page)" 1

fire db 3000 $ram 50
page 950 >page
expect "db, from memory, later" "$(value precise_samples_total '/shop/db"' "$(level $ram)")" 50
expect "and from the L3 cache as before" "$(value precise_samples_total '/shop/db"' "$(level $l3)")" 300
status=0
kill -TERM $serving
wait $serving || status=$?
cat served.txt
expect "status" $status 0
