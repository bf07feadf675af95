# precise on cycles: each overflow reaches the program, the ledger equals the event's own count, precision steps down visibly.
# pmu: skl spr@6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
exact

# 1234567 = 1234 * 1000 + 567, without precision and with it.
precise_record off -e cycles -c 1000 --precise off -- "$FIRE" -e 'cycles ip=target count=1234567'
precise_report off function
expect "lab-fire" "$(grep fired off.txt)" "fired 1234567 taken 1234"
ledger_of off 1234
expect "count" "$(said off trust event_count)" 1234567
expect "functions" "$(said off groups)" "lab_fire_target 1234 1234000 0 0"
expect "precise" "$(said off trust precise)" false
grep -q 'NOT PRECISE' off.txt || fail "nothing says that it is not precise"

# On Skylake, the kernel samples precise cycles by other events: INST_RETIRED.ANY_P at level 2, .PREC_DIST at level 3.
fired=cycles most=cycles
if [ "$LAB_PMU" = skl ]; then fired='event event=0xc0' most='event event=0x1c0'; fi
precise_record exact -e cycles:pp -c 1000 --precise require -- "$FIRE" -e "$fired ip=target count=1234567"
precise_report exact function
ledger_of exact 1234
expect "functions, exactly" "$(said exact groups)" "lab_fire_target 1234 1234000 0 0"
expect "granted" "$(said exact trust granted), $(said exact trust precise)" "2, true"

# By time, at about a kilohertz: what the program saw is what the event counted, to 0.1 %.
timed 10
taskset -c 0 bash -c 'while :; do :; done' &
precise_record timed -C 0 -e cycles -c 50021 --precise off --epoch 100ms --duration 8s
kill $!
precise_report timed epoch
ledger_closes timed
seen=$(said timed ledger seen)
between "samples by time" "$seen" 1000 1000000
due=$(said timed trust expected)
between "samples of $due due, but for one in flight at the end" "$seen" $((due - 1)) "$due"
between "drift, millionths" "$(said timed drift)" 0 1000
between "epochs" "$(said timed groups | wc -l)" 10 200
expect "samples over all epochs" "$(said timed groups | awk '{sum += $(NF - 3)} END {print sum}')" \
	"$(said timed ledger aggregated)"

# By frequency, on both CPUs. At its ticks the kernel drops what a counter had of a period that it finds too long: so not to the last event.
# Without a budget: under emulation, a sample takes so long that a percent of a CPU has room for a hundred a second.
precise_record frequency -e cycles -F 999 --overhead off --precise off --by ip,cpu --duration 3s
precise_report frequency cpu
ledger_closes frequency
between "CPUs" "$(said frequency groups | wc -l)" 2 2
between "coverage, per mille" "$(said frequency permille)" 985 1005
between "samples at 999 Hz" "$(said frequency ledger seen)" 2000 9000

# The ladder: what is asked for is granted or each step down is said.
exact
precise_record ladder -e cycles:ppp -c 1000 -- "$FIRE" -e "$most ip=target count=10500"
precise_report ladder function
expect "ladder: seen" "$(said ladder ledger seen)" 10
granted=$(said ladder trust granted)
between "granted of cycles:ppp" "$granted" 2 3
if [ "$granted" = 2 ]; then
	said ladder findings | grep -q 'precise level 3 was refused' || fail "the step down is not said"
fi
RECORD_STATUS=68 precise_record never -e cpu-clock --precise require -- true
grep -q 'precise' never.txt || fail "nothing says why"

# Both ways to read a sample give the same; before Linux 6.2 there is one.
precise_record probe -e cycles -c 1000 --precise off --read-path probe -- "$FIRE" -e 'cycles ip=target count=1234567'
precise_report probe function
ledger_of probe 1234
expect "functions by probe reads" "$(said probe groups)" "lab_fire_target 1234 1234000 0 0"
if [ "$LAB_KERNEL" = 6.1 ]; then
	RECORD_STATUS=66 precise_record direct -e cycles -c 1000 --read-path direct -- "$FIRE" -e 'cycles ip=target count=10'
	cat direct.txt
	grep -q '6\.2' direct.txt || fail "nothing says which kernel can do it"
fi
