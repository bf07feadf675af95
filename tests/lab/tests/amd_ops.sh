# IBS ops and fetches: as many samples as were fired, with the values that were fired, through stock perf.
# pmu: amd
# kernel: 6.12
# timeout: 120
. "$LAB_DIR/guest/lib.sh"
exact

# On 6.1 IBS counts per CPU only, so always -C or -a here.
for batch in $(seq 0 9); do
	echo "op ip=0x40$batch""234 addr=0x7f00000${batch}0000 stride=64 phys=0x12340000 latency=$((321 + batch)) source=3 count=20"
done >ops.fire
quiet_perf record -C 0 -e ibs_op// -c 65536 -d -W --phys-data -R -o ops.data -- "$FIRE" ops.fire
expect "lab-fire" "$(grep fired perf.out)" "fired 200 taken 200"
samples ops.data ip,addr,weight,data_src,phys_addr | grep OP >ops.txt
head -2 ops.txt
expect "samples" "$(wc -l <ops.txt)" 200
expect "different addresses" "$(awk '{print $1}' ops.txt | sort -u | wc -l)" 200
expect "loads that DRAM answered" "$(grep -c 'OP LOAD|LVL Local RAM' ops.txt)" 200
for batch in 0 7; do
	line=$(grep -m1 -i " *7f00000${batch}0040 " ops.txt)
	expect "ip of batch $batch" "$(grep -o "40${batch}234" <<<"$line")" "40${batch}234"
	expect "latency of batch $batch" "$(grep -ow "$((321 + batch))" <<<"$line" | head -1)" "$((321 + batch))"
	expect "physical address of batch $batch" "$(grep -o '12340040' <<<"$line")" 12340040
done

# The raw registers are what was fired, decoded by perf.
perf script -D -i ops.data 2>/dev/null >dump.txt || true
expect "raw records with DRAM as source" "$(grep -c 'DataSrc 3=' dump.txt)" 200

quiet_perf record -C 0 -e ibs_op// -c 65536 -d -o stores.data -- "$FIRE" -e 'op store addr=0x7f0000100000 stride=8 count=50' -e 'op count=25'
expect "stores" "$(samples stores.data ip,addr,data_src | grep -c 'OP STORE')" 50
expect "ops" "$(samples stores.data ip | wc -l)" 75

quiet_perf record -a -e ibs_fetch// -c 65536 -o fetch.data -- "$FIRE" -e 'fetch ip=target latency=77 complete ic-miss count=100'
expect "fetches" "$(samples fetch.data ip,sym | grep -c lab_fire_target)" 100

# The filter for L3 misses is the hardware's, from Zen 4 on.
if [ "$LAB_PMU" != zen3 ]; then
	quiet_perf record -C 0 -e ibs_op/l3missonly=1/ -c 65536 -d -o l3.data -- "$FIRE" -e 'op source=1 count=100' -e 'op source=3 count=40'
	expect "L3 misses" "$(samples l3.data ip | wc -l)" 40
fi
