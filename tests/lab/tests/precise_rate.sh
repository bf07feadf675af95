# As many samples as the guest can take, for ten seconds, with drains and with processes that come and go: none is missing.
# pmu: skl zen4
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000 load='load ip=target addr=0x7f0000100000 stride=64 latency=200 source=0x7'
else
	event=ibs_op// period=65536 load='op load ip=target addr=0x7f0000100000 stride=64 latency=200 source=1'
fi
taskset -c 1 bash -c 'while :; do /bin/true; done' &
churn=$!
fires() {
	timeout 60 "$FIRE" --wait 50 -e "$load count=1" >first.txt
	timeout 10 "$FIRE" -e "$load count=100000000" || [ $? = 124 ]
}
precise_whole rate -C 0 -e $event -c $period --by ip,address,cgroup --epoch 100ms
kill $churn
seen=$(said rate ledger seen)
echo "$((seen / 10)) samples per second"
between "samples in ten seconds" "$seen" 3000 10000000
# Each is in the table or in the count of those that found it full.
expect "expected" "$(said rate trust expected)" "$seen"
expect "in the table, or not for its being full" "$(($(said rate ledger aggregated) + $(said rate ledger 'table full')))" "$seen"
expect "closes, lost, throttled" "$(said rate trust closes), $(said rate ledger lost), $(said rate ledger throttled)" "true, 0, 0"
