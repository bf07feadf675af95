# precise itself on the newest kernel that Debian has: the kernel's verifier accepts its programs, and each page fault is sampled.
# pmu: none
# kernel: newest
# timeout: 120
. "$LAB_DIR/guest/lib.sh"

status=0
"$PRECISE" doctor >doctor.txt || status=$?
head -4 doctor.txt
expect "exit code of doctor without precise samples" $status 66
grep -q 'kernel  *passed' doctor.txt || { cat doctor.txt; fail "doctor does not know this kernel"; }

# The shapes of the program: a filter before all dimensions, objects, samples one by one, call chains.
export FOREST_WAIT_MS=0
forest=$LAB_WORKLOADS/forest
precise_record all -e page-faults -c 1 --by ip,address,cgroup,process,thread,cpu --filter 'comm == "forest" && addr > 0x1000 && !kernel' -- "$forest"
precise_report all function
said all groups | tee groups.txt
grep -q '^touch 146 ' groups.txt || fail "not every page fault of touch"
ledger_closes all
precise_record objects -e page-faults -c 1 --by object -- "$forest"
"$PRECISE" script -e page-faults -c 1 -g -- "$forest" >script.txt 2>script.err || { cat script.err; fail "precise script"; }
expect "faults of touch, one by one" "$(grep -cE '^\s.*\btouch\b|: touch\b' script.txt || true)" 146
precise_record clock -e cpu-clock -c 1000000 -g -- "$forest"
