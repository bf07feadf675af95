# PEBS loads and stores: as many samples as were fired, with the values that were fired, through stock perf.
# pmu: intel
# kernel: 6.12
# timeout: 120
. "$LAB_DIR/guest/lib.sh"
exact

# 10 batches of 100 loads: ip, address, latency and data source of every sample are known. Encoding 8 of the data source
# is decoded by the driver of the guest's kernel.
for batch in $(seq 0 9); do
	echo "load ip=0x40$batch""234 addr=0x7f00000${batch}0000 stride=64 latency=$((321 + batch)) source=0x8 count=100"
done >loads.fire
quiet_perf record -C 0 -e "$(loads_event 30)" -c 1000 -d -W -o loads.data -- "$FIRE" loads.fire
expect "lab-fire" "$(grep fired perf.out)" "fired 1000 taken 1000"
samples loads.data ip,addr,weight,data_src | grep OP >loads.txt
head -2 loads.txt
expect "samples" "$(wc -l <loads.txt)" 1000
expect "different addresses" "$(awk '{print $1}' loads.txt | sort -u | wc -l)" 1000
expect "different data sources" "$(awk '{print $2}' loads.txt | sort -u | wc -l)" 1
grep -q 'LVL .*PMEM\|LVL .*Any cache' loads.txt || fail "the data source is not decoded as encoding 8"
for batch in 0 7; do
	line=$(grep -m1 -i " *7f00000${batch}0040 " loads.txt)
	expect "ip of batch $batch" "$(grep -o "40${batch}234" <<<"$line")" "40${batch}234"
	expect "latency of batch $batch" "$(grep -ow "$((321 + batch))" <<<"$line" | head -1)" "$((321 + batch))"
done

# The threshold is the hardware's: what is not above it gives no record.
quiet_perf record -C 0 -e "$(loads_event 325)" -c 1000 -d -W -o slow.data -- "$FIRE" loads.fire
expect "lab-fire above latency 325" "$(grep fired perf.out)" "fired 1000 taken 500"
expect "samples above latency 325" "$(samples slow.data addr,data_src | grep -c OP)" 500

echo "store ip=0x401300 addr=0x7f0000100000 stride=8 source=1 count=200" >stores.fire
quiet_perf record -C 0 -e cpu/mem-stores/P -c 1000 -d -o stores.data -- "$FIRE" stores.fire
expect "stores" "$(samples stores.data ip,addr,data_src | grep -c 'OP STORE')" 200
