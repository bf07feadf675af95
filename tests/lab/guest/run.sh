#!/bin/bash
# Runs the tests of one guest, one after the other, and says what came of each in lines that `cargo xtask lab` reads.
# A test passes when its script ends with 0, with no warning of the kernel meanwhile.

export LAB_OUT=/run/lab-out

# What a test may have changed is put back.
reset_guest() {
	if [ "$LAB_PMU" != none ]; then
		echo 10 >"/sys/module/$LAB_MODULE/parameters/ns_per_event"
		echo 9 >"/sys/module/$LAB_MODULE/parameters/step"
		echo 0 >"/sys/module/$LAB_MODULE/parameters/hitm"
	fi
	# No throttling: its answer to emulation's slow interrupts is to lose samples. In this order: the rate
	# cannot be raised any more once the limit is off.
	sysctl -q kernel.perf_cpu_time_max_percent=25
	sysctl -q kernel.perf_event_max_sample_rate=1000000
	sysctl -q kernel.perf_cpu_time_max_percent=0
	sysctl -q kernel.perf_event_paranoid=-1 kernel.kptr_restrict=0
}

kernel_complaints() {
	dmesg | grep -E 'WARNING:|BUG:|Oops|Call Trace|lockup|stall'
}

run_test() { # seconds:path
	local limit=${1%%:*} path=${1#*:} name status complaints seconds=$SECONDS
	name=$(basename "$path" .sh)
	echo "LAB-TEST $name"
	reset_guest
	mkdir -p "/run/lab/$name" && cd "/run/lab/$name" || exit
	dmesg --clear
	timeout --kill-after=5 "$limit" bash -euo pipefail "$path" </dev/null 2>&1
	status=$?
	complaints=$(kernel_complaints)
	if [ -n "$complaints" ]; then
		dmesg | tail -n 100
		echo "LAB-RESULT $name fail: the kernel complained"
	elif [ $status = 124 ] || [ $status = 137 ]; then
		echo "LAB-RESULT $name fail: not done after $limit s"
	elif [ $status != 0 ]; then
		echo "LAB-RESULT $name fail: exit status $status"
	else
		echo "LAB-RESULT $name pass ($((SECONDS - seconds)) s)"
	fi
}

ip link set lo up
# As systemd would: without it, not even the controllers that are always on (perf_event) know any cgroup but the root.
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
for test in $LAB_TESTS; do
	run_test "$test"
done
