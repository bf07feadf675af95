# The latency heatmap of two services in cgroups of their own: its numbers are the script's, by panel, row and time.
# pmu: skl@6.12 zen4
# timeout: 120
. "$LAB_DIR/guest/lib.sh"
exact

# web is fast first and slow later; db is slow all the time.
if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000 load='load source=0x7'
else
	event=ibs_op// period=65536 load='op load source=1'
fi
services() {
	"$FIRE" --wait 60 --cgroup /sys/fs/cgroup/shop/web -e "$load ip=target addr=heap latency=50 count=120" &&
		"$FIRE" --cgroup /sys/fs/cgroup/shop/db -e "$load ip=target addr=heap latency=800 count=70" -e 'sleep ms=2500' &&
		"$FIRE" --cgroup /sys/fs/cgroup/shop/web -e "$load ip=target addr=heap latency=400 count=30" &&
		"$FIRE" --cgroup /sys/fs/cgroup/shop/db -e "$load ip=target addr=heap latency=800 count=20"
}
fires() { services; }
precise_whole shop -C 0 -e $event -c $period --by cgroup,latency --epoch 500ms
account shop 240

"$PRECISE" heatmap -i shop.parquet --axis latency --panels cgroup --json >map.json
said map heatmap | tee map
# Rows begin where the scripted latency falls into them: no row is wider than an eighth of where it begins.
row() { # PANEL LATENCY: samples, first and last column of that row
	awk -v panel="$1" -v latency="$2" '$1 == panel && $2 <= latency && latency < $2 * 1.125 + 1 {print $3, $4, $5}' map
}
expect "rows with samples" "$(wc -l <map)" 3
read -r samples _ fast_end < <(row /shop/web 50)
expect "fast samples of web" "$samples" 120
read -r samples slow_begin _ < <(row /shop/web 400)
expect "slow samples of web" "$samples" 30
read -r samples db_begin db_end < <(row /shop/db 800)
expect "samples of db" "$samples" 90
[ "$fast_end" -lt "$slow_begin" ] || fail "web was slow in column $slow_begin, and fast until $fast_end"
[ "$db_begin" -lt "$slow_begin" ] && [ "$db_end" -ge "$slow_begin" ] || fail "db was there from $db_begin to $db_end only"

# The picture itself.
"$PRECISE" heatmap -i shop.parquet -o "$LAB_OUT/shop.svg"
grep -q '/shop/web' "$LAB_OUT/shop.svg" && grep -q '/shop/db' "$LAB_OUT/shop.svg" || fail "a panel has no name"

# One cgroup by filter, with the other's samples in the ledger.
precise_whole db -C 0 -e $event -c $period --by cgroup,latency -G /shop/db
account db 240 90
