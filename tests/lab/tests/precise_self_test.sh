# `precise doctor --self-test` where instructions and addresses are real, one step at a time, and the rest is not: what is real passes, and
# what the emulation does not have fails, each for its reason.
# pmu: skl zen4
# kernel: 6.12
# timeout: 600
. "$LAB_DIR/guest/lib.sh"
timed 5

"$PRECISE" doctor >doctor.txt || { cat doctor.txt; fail "precise doctor sees no precise samples here"; }
head -3 doctor.txt

status=0
"$PRECISE" doctor --self-test --quiet --json >self-test.json || status=$?
cp self-test.json "$LAB_OUT/"
python3 - self-test.json <<-'EOS' >checks.txt
	import json, sys
	report = json.load(open(sys.argv[1]))
	print("verdict |", report["verdict"])
	for result in report["results"]:
	    for check in result["checks"]:
	        print(result["preset"], "|", check["name"], "|", check["status"], "|", check["found"], "|", check["reason"])
EOS
cat checks.txt
expect "exit code" $status 68
grep -q '^verdict | Precise sampling fails here: ' checks.txt || fail "the verdict says something else"

check() { # PRESET NAME STATUS [REASON]
	grep -q "^$1 | $2 | $3 | .* | .*${4:-}" checks.txt || fail "$1: $2 is not $3${4:+ because: $4}"
}

# The samples that single steps make: true instructions, true addresses.
for preset in cycles loads stores c2c branches fetch; do
	check $preset opens passed
	check $preset 'ledger closes' passed
done
check cycles function passed
for preset in loads stores c2c; do
	check $preset samples passed
	check $preset instructions passed
	check $preset addresses passed
done
check fetch samples passed
check fetch function passed
for name in opens samples 'ledger closes' instructions addresses; do check faults "$name" passed; done
check clock function passed

# Each load takes 200 cycles, whatever it reads; no line is anybody's; nothing is known of branches.
check loads latency passed
check loads 'latency grows' failed 'the latency must grow with the size of the buffer'
check c2c HITM failed 'no sample reports a line that another core had modified'
case $LAB_VENDOR in
intel)
	for level in L1 L2 memory; do check loads "level: $level" failed 'report Any cache'; done
	# Any instruction of the loop is taken for a mispredicted branch.
	check branches mispredictions failed 'must be of the random branch'
	;;
amd)
	for level in L1 L2; do check loads "level: $level" failed 'report RAM'; done
	check branches samples failed 'none passed the filter of the preset'
	check fetch completed failed
	check loads coverage passed
	;;
esac
