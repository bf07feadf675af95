# False sharing that advice removes: two threads share lines of real orders, c2c names both fields, `types --advise` prints another
# order of the members, the same program is built with it, and no load finds a line of an order modified any more.
# Real are the programs, their threads, instructions and addresses, and the compiler. The units say which loads are HITM, by the
# stores that they saw of other CPUs (`hitm`, see README.md).
# One vendor, because the units say which loads are HITM; skl has the fields of precise_types.
# pmu: zen4
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
timed 10
pmu_set hitm 1

fires() {
	# As in precise_types: the recorder counts before it samples, and the first names take seconds.
	"$FIRE" --wait 60 --events $MEM_EVENTS -e "sleep ms=5000"
	"$now/orders" "${ROUNDS:-4000000}" >"$now.printed"
	sleep 4
}
# Builds NAME/orders with NAME/order.h, records it, and counts its loads of orders, those of them that are HITM, and lines with false sharing.
measure() { # NAME
	now=$1
	cp "$LAB_DIR/workloads/orders/orders.c" "$now"
	gcc -O2 -g -pthread -o "$now/orders" "$now/orders.c"
	precise_whole "$now" -C 0,1 -e mem -c 20011 --by ip,address,cpu,thread,process,source --granule 1
	"$PRECISE" c2c -i "$now.parquet" --min-samples 1 -n 1000 -x'|' >"$now.csv"
	"$PRECISE" types -i "$now.parquet" --advise Order | tee "$now.advice"
	precise_report "$now" type,snoop 'mem_op == load'
	read -r all hitm < <(said "$now" groups |
		awk '$1 == "Order" {all += $3; if ($2 == "HitM") hitm += $3} END {print all + 0, hitm + 0}')
	false_sharing=$(awk -F'|' '$4 ~ /^false/ && /\|(match_loop|scan)\|/ {lines[$1]} END {print length(lines)}' "$now.csv")
}
# The average number of lines of a visit: now, and as advised.
lines() { # NAME
	tr '\n' ' ' <"$1.advice" | sed -E 's/.* touches ([0-9.]+) \([^)]*\) cache lines now, and ([0-9.]+) .*/\1 \2\n/'
}

mkdir before after
cp "$LAB_DIR/workloads/orders/order.h" before
measure before
between "loads of orders before" "$all" 500 1000000
between "HITM loads of orders before" "$hitm" 100 "$all"
between "lines of orders with false sharing before" "$false_sharing" 1 64
"$PRECISE" c2c -i before.parquet | tr '\n' ' ' | tr -s ' ' |
	grep -q '`Order.seq` (written by `match_loop`) and `Order.next` (read by `scan`) share line 0 of Order: put `seq`' ||
	fail "c2c does not name both fields"
# Loads and stores of each field, of all events.
"$PRECISE" types -i before.parquet Order -x'|' |
	awk -F'|' '$2 == "Order" {loads[$6] += $12; stores[$6] += $13} END {for (of in loads) print of, loads[of], stores[of]}' |
	sort | tee fields
between "stores to seq" "$(awk '$1 == "seq" {print $3}' fields)" 100 1000000
between "loads of next" "$(awk '$1 == "next" {print $2}' fields)" 100 1000000
expect "members that no thread uses" "$(awk '!$2 && !$3 {print $1}' fields | xargs)" "name note rest"
read -r before advised < <(lines before)
between "hundredths of a line for a visit before" "${before/./}" 101 300

# The header is what was advised, as it was printed.
sed -n '/^struct Order {/,/^};/p' before.advice >after/order.h
measure after
between "loads of orders after" "$all" 500 1000000
expect "HITM loads of orders after" "$hitm" 0
expect "lines of orders with false sharing after" "$false_sharing" 0
expect "what it printed" "$(cat after.printed)" "$(cat before.printed)"
read -r after _ < <(lines after)
expect "lines of a visit after, as advised" "$after" "$advised"
