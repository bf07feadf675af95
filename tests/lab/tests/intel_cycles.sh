# Plain cycles and instructions: exact counts, samples at a fixed period, cgroups, and both ways that counters can move.
# pmu: intel
# kernel: 6.12
# timeout: 90
. "$LAB_DIR/guest/lib.sh"
exact

counted() { # EVENT: its count in the CSV of perf stat
	awk -F, -v event="$1" '$3 ~ event {print $1}' stat.csv
}

quiet_perf stat -x, -o stat.csv -C 0 -e cycles,instructions -- "$FIRE" -e 'cycles count=1234567' -e 'instructions count=42'
expect "cycles counted" "$(counted cycles)" 1234567
expect "instructions counted" "$(counted instructions)" 42

# On CPU 1 nothing happened; events of a task count where it runs.
quiet_perf stat -x, -o stat.csv -C 1 -e cycles -- "$FIRE" --cpu 0 -e 'sleep ms=1' && expect "cycles elsewhere" "$(counted cycles)" 0
quiet_perf stat -x, -o stat.csv -e cycles:u -- "$FIRE" --cpu 1 -e 'cycles count=77777'
expect "cycles of a task" "$(counted cycles)" 77777

# 1234567 = 1234 * 1000 + 567. With -a, not -C 0: perf must see lab-fire's mappings, wherever it was when it made them.
quiet_perf record -a -e cycles -c 1000 -o cycles.data -- "$FIRE" -e 'cycles ip=target count=1234567'
expect "lab-fire" "$(grep fired perf.out)" "fired 1234567 taken 1234"
expect "samples of period 1000" "$(samples cycles.data ip,sym | grep -c lab_fire_target)" 1234

# PEBS makes no difference to the number.
if [ "$LAB_PMU" != skl ]; then # there, precise cycles are another event
	quiet_perf record -C 0 -e cycles:pp -c 1000 -o precise.data -- "$FIRE" -e 'cycles ip=0x401234 count=200999'
	expect "precise samples" "$(samples precise.data ip | grep -c 401234)" 200
fi

# Only what happens in the cgroup counts.
mkdir -p /sys/fs/cgroup/a /sys/fs/cgroup/b
cat >both.sh <<-EOF
	"$FIRE" --cgroup /sys/fs/cgroup/a -e 'cycles count=10000'
	"$FIRE" --cgroup /sys/fs/cgroup/b -e 'cycles count=3000'
EOF
quiet_perf stat -x, -o stat.csv -C 0 -e cycles,cycles -G a,b -- bash both.sh || fail "perf stat of cgroups"
expect "cycles per cgroup" "$(counted cycles | tr '\n' ' ')" "10000 3000 "

# By time: one cycle is 10 ns. The ledger still closes: as many samples as the event's own count has periods.
timed 10
read -r _ count _ samples _ throttled _ lost < <("$LAB_WORKLOADS/ledger" 100000 1)
between "cycles of a second or two" "$count" 20000000 1000000000
expect "samples at period 100000" "$samples" "$((count / 100000))"
expect "throttled, lost" "$throttled, $lost" "0, 0"
