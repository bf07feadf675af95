# Where PEBS is less than it is on bare metal, or not there, precise says what is missing, and --precise require fails.
# pmu: guest-pebs nopebs
# kernel: 6.12
# timeout: 90
. "$LAB_DIR/guest/lib.sh"
exact

load='load ip=target addr=heap latency=200 source=0x7 count=150'
case $LAB_PMU in
guest-pebs)
	# Exact, and no more. Without the baseline only the events that have a constraint are precise: cycles is not among them.
	precise_record exact -e cpu/event=0x0,umask=0x1/pp -c 1000 --precise require -- "$FIRE" -e 'instructions ip=target count=150500'
	precise_report exact function
	account exact 150
	expect "precise instructions" "$(said exact groups)" "lab_fire_target 150 150000 0 0"
	precise_record cycles -e cycles:pp -c 1000 -- "$FIRE" -e 'cycles ip=target count=150500'
	precise_report cycles function
	account cycles 150
	expect "precise cycles" "$(said cycles trust precise), $(said cycles trust granted)" "false, 0"
	said cycles findings | grep -q 'precise level 2 was refused' || fail "the step down is not said"
	RECORD_STATUS=68 precise_record never -e cycles --precise require -- true
	precise_record loads -e loads -c 1000 -- "$FIRE" -e "$load"
	precise_report loads function
	account loads 150
	said loads findings
	said loads findings | grep -q '100.0% of the aggregated samples have no data address' || fail "nothing says that addresses are missing"
	said loads findings | grep -q '100.0% of the aggregated samples have no memory level' || fail "nothing says that levels are missing"
	said loads findings | grep -q '100.0% of the aggregated samples have no latency' || fail "nothing says that latencies are missing"
	;;
nopebs)
	precise_record cycles -e cycles -c 1000 -- "$FIRE" -e 'cycles ip=target count=150500'
	precise_report cycles function
	account cycles 150
	expect "precise" "$(said cycles trust precise), $(said cycles trust granted)" "false, 0"
	said cycles findings
	said cycles findings | grep -q 'refused: this machine does not support it' || fail "the steps down are not said"
	RECORD_STATUS=68 precise_record never -e cycles --precise require -- true
	cat never.txt
	;;
esac
