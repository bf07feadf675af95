# Cache lines that bounce: a pair that shares falsely, one that shares truly and one that is quiet, by their numbers and verdicts;
# lines are promoted by HITM loads, for all events at once; whatever is not kept in detail is counted.
# pmu: skl@6.12 zen4
# timeout: 700
. "$LAB_DIR/guest/lib.sh"
exact

# near and far: a load that finds the line modified, of two classes. hit: one that does not.
if [ "$LAB_VENDOR" = intel ]; then
	period=1000
	near() { echo "load ip=target addr=$1 latency=100 source=0x7 count=$2 ${3-}"; }
	far() { echo "load ip=target addr=$1 latency=300 source=0xd count=$2"; }
	hit() { echo "load ip=target addr=$1 latency=50 source=0x4 count=$2 ${3-}"; }
	store() { echo "store ip=target addr=$1 source=1 count=$2"; }
	near_class=local far_class=remote
else
	period=65536
	near() { echo "op load dc-miss l2-miss ip=target addr=$1 latency=100 source=1 width=8 count=$2 ${3-}"; }
	far() { echo "op load dc-miss l2-miss ip=target addr=$1 latency=300 source=2 width=8 count=$2"; }
	hit() { echo "op load dc-miss l2-miss dirty ip=target addr=$1 latency=50 source=1 width=8 count=$2 ${3-}"; }
	store() { echo "op store ip=target addr=$1 width=8 count=$2"; }
	near_class=same_ccx far_class=other_ccx
fi

# False sharing at 0, true sharing at 4096, and a quiet pair at 8192, each by two threads on two CPUs.
{
	near data+0 100
	store data+8192 80
	store data+0 60
	near data+4096 40
	store data+4096 30
	echo "thread cpu=1"
	hit data+8200 90
	far data+8 140
	store data+8 50
	far data+4096 70
	store data+4096 20
} >pairs.fire
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS "$now.fire"; }
now=pairs
precise_whole pairs -C 0,1 -e c2c -c $period
"$PRECISE" c2c -i pairs.parquet
"$PRECISE" c2c -i pairs.parquet --json >pairs.c2c.json
# Verdict, HITM, loads, stores, threads of each line; of its accesses offset, operation, samples, HITM, function.
"$PRECISE" c2c -i pairs.parquet -x'|' >pairs.csv
column() { awk -F'|' -v "names=$1" 'NR == 1 {n = split(names, want, " "); for (i = 1; i <= NF; i++) at[$i] = i; next}
	{line = ""; for (i = 1; i <= n; i++) line = line (i > 1 ? "|" : "") $at[want[i]]; print line}' pairs.csv; }
column "verdict line_hitm line_loads line_stores line_threads hitm_$near_class hitm_$far_class" | sort -u >lines
sort >lines.wanted <<-EOF
	false sharing|240|240|110|2|100|140
	true sharing|110|110|50|2|40|70
EOF
diff lines lines.wanted || fail "the lines are not what was fired"
column "line offset op samples hitm cpus function variable" | sort >accesses
sort >accesses.wanted <<-EOF
	1|0|LOAD|100|100|0|lab_fire_target|LAB_FIRE_DATA+0
	1|0|STORE|60|0|0|lab_fire_target|LAB_FIRE_DATA+0
	1|8|LOAD|140|140|1|lab_fire_target|LAB_FIRE_DATA+8
	1|8|STORE|50|0|1|lab_fire_target|LAB_FIRE_DATA+8
	2|0|LOAD|110|110|0 1|lab_fire_target|LAB_FIRE_DATA+4096
	2|0|STORE|50|0|0 1|lab_fire_target|LAB_FIRE_DATA+4096
EOF
diff accesses accesses.wanted || fail "the accesses are not what was fired"
if [ "$LAB_VENDOR" = amd ]; then
	expect "widths" "$(column "bytes bytes_from" | sort -u)" "8|hardware"
fi
"$PRECISE" c2c -i pairs.parquet | tr '\n' ' ' | tr -s ' ' | grep -q 'LAB_FIRE_DATA (bytes\? 0.*separate cache lines' ||
	fail "no advice names the variable"

# counter NAME: of all events of a capture, by its metadata.
counter() { "$PRECISE" report -i "$now.parquet" --json | grep -o "\"$1\": *[0-9]*" | awk -F: '{sum += $2} END {print sum + 0}'; }
other() { "$PRECISE" c2c -i "$now.parquet" --json | grep -o '"elsewhere": *[0-9]*' | awk -F: '{sum += $2} END {print sum + 0}'; }
expect "samples of the quiet pair, without address" "$(other)" 170
expect "samples in all" "$(grep -o '"samples": *[0-9]*' pairs.c2c.json | head -n 2 | awk -F: -v v=$LAB_VENDOR 'v == "intel" || NR == 1 {sum += $2} END {print sum}')" 680

# More lines than there is room for, and many more that nobody modified: the room is filled, the rest is counted, and the table
# holds a cell for each piece of code, not for each line.
# A million of them in one guest, half a minute; elsewhere as many as take seconds, or `xtask lab --set C2C_LINES=1000000`.
if [ "$LAB_PMU@$LAB_KERNEL" = zen4@6.12 ]; then lines=1000000; else lines=20000; fi
lines=${C2C_LINES:-$lines}
{
	near 0x7f0000000000 100 stride=64
	hit 0x7e0000000000 "$lines" stride=64
} >many.fire
now=many
began=$SECONDS
RECORD_FOR=$((100 + lines / 2000))s precise_whole many -C 0 -e c2c -c $period --lines 16
echo "$lines quiet lines took $((SECONDS - began)) s"
expect "samples without address" "$(other)" $((84 + lines))
expect "lines in detail" "$("$PRECISE" c2c -i many.parquet --min-samples 1 -n 100 --json | grep -o '"address"' | wc -l)" 16
"$PRECISE" c2c -i many.parquet --min-samples 1 -n 1 | tee many.txt | tail -n 12
tr '\n' ' ' <many.txt | tr -s ' ' | grep -q '84 HITM loads hit cache lines for which there was no slot' || fail "nothing says that lines found no room"
expect "cells that found no place" "$(said many ledger 'table full')" 0

# What was recorded for another question names the command.
now=plain
{ hit data+0 200; } >plain.fire
precise_whole plain -C 0 -e mem -c $period
status=0
"$PRECISE" c2c -i plain.parquet 2>refused || status=$?
expect "exit code without addresses" "$status" 2
grep -q 'precise record' refused || fail "the refusal names no command"
