# What the real drivers refuse ends in the next best that is said to be so, or in a sentence that names the way out.
# pmu: skl spr@6.12 zen4
# timeout: 180
. "$LAB_DIR/guest/lib.sh"
exact

refused() { # STATUS PATTERN ARGUMENT…
	RECORD_STATUS=$1 precise_record refused "${@:3}"
	grep -qe "$2" refused.txt || { cat refused.txt; fail "nothing says $2"; }
	echo "record ${*:3}: refused in words, as it should be"
}

case $LAB_VENDOR in
intel)
	# Level 3 is for counter 0, and load latency is not counted there on Sapphire Rapids. Without its auxiliary event it is refused
	# there (ENODATA): so it is always opened.
	precise_record ppp -e cpu/event=0xcd,umask=0x1,ldlat=30/ppp -c 1000 -- "$FIRE" -e 'load ip=target addr=heap latency=40 source=1 count=10'
	precise_report ppp function
	account ppp 10
	if [ "$LAB_PMU" = spr ]; then
		expect "granted of 3" "$(said ppp trust granted)" 2
		said ppp findings | grep -q 'precise level 3 was refused' || fail "the step down is not said"
	else
		expect "granted of 3" "$(said ppp trust granted)" 3
	fi
	# An inverted event has no precise form on Skylake (no record says so on Sapphire Rapids: ENODATA).
	[ "$LAB_PMU" = spr ] || refused 68 'level 2 was refused' -e cpu/event=0xcd,umask=0x1,inv=1/pp --precise require -- true
	refused 2 'maximum of ldlat is 0xffff' -e cpu/event=0xcd,umask=0x1,ldlat=70000/pp -- true
	refused 66 "no PMU 'ibs_op'" -e ibs_op// -- true
	frequent=cycles
	;;
amd)
	# No software filter on these kernels: user and kernel cannot be told apart by the driver.
	refused 66 'use a filter' -C 0 -e ibs_op//u --duration 1s
	refused 2 "no term or event 'ldlat'" -C 0 -e ibs_op/ldlat=200/ --duration 1s
	[ "$LAB_KERNEL" != 6.1 ] || refused 66 'only on whole CPUs' -e ibs_op// -- true
	# One op unit per CPU: two events take turns, and that is said.
	fires() { "$FIRE" --wait 60 -e 'op load addr=heap count=20' -e 'sleep ms=500' -e 'op store addr=heap count=20'; }
	precise_whole two -C 0 -e ibs_op// -e ibs_op/cnt_ctl=1/ -c 65536 --by cpu
	said two findings | grep -q multiplexed || fail "nothing says that the events took turns"
	frequent=ibs_op//
	;;
esac

# The kernel's own limit, also where it has lowered that by itself.
sysctl -q kernel.perf_cpu_time_max_percent=25 kernel.perf_event_max_sample_rate=2000
refused 2 'exceed the current limit of this machine (2000)' -F 5000 -e $frequent -C 0 --duration 1s

# Somebody who may not.
sysctl -q kernel.perf_event_paranoid=2
chmod 777 .
status=0
setpriv --reuid 1000 --regid 100 --clear-groups "$PRECISE" record --quiet -o no.parquet -e $frequent -C 0 --duration 1s 2>no.txt || status=$?
expect "status without a permission" "$status" 65
grep -q 'CAP_PERFMON' no.txt || fail "nothing says what is missing"
