# Call chains while a process maps and unmaps libraries as fast as it can, at the same places: no frame is wrong, each chain that is not whole says why, and the ledgers of samples and of chains close.
# Each vendor and each kernel once.
# pmu: skl@6.12 zen4@6.1
# timeout: 100
. "$LAB_DIR/guest/lib.sh"
cp "$LAB_WORKLOADS/libraries" "$LAB_WORKLOADS"/library_*.so .
cp libraries steady

# Ops are sampled in the kernel too, which maps most of the time, and on 6.1 those of a CPU only, not those of the two programs and what they
# start.
if [ "$LAB_VENDOR" = intel ]; then event=loads period=20000 whose=; else event=ibs_op// period=160000 whose=-a; fi
# Emulation is slow: the tables of the programs take seconds, and so do the names at the end.
arguments=". 9 10 512 64 4"
echo "export LD_BIND_NOW=1; ./libraries $arguments >rate.txt & ./steady $arguments & wait; sleep 4" >programs.sh
precise_record libraries $whose -g -e $event -c $period -- bash programs.sh
read -r _ maps _ ms <rate.txt
# On a machine that is busy with other guests, 144 were seen. What they lead to is counted below.
between "mappings per second" $((maps * 1000 / ms)) 20 1000000

# The ledger of samples closes, and each sample that was kept has a chain with an end.
precise_report libraries process
ledger_closes libraries
kept=$(said libraries ledger aggregated)
"$PRECISE" report -i libraries.parquet -g --idle --json >ends.json
said ends ends | tee ends.txt
expect "chains and samples without one" "$(awk '{ sum += $2 } END { print sum }' ends.txt)" "$kept"

# Frames begin with the process and end with the sampled function; "chain ends" stands for the callers that are not known.
"$PRECISE" flamegraph -i libraries.parquet --folded | grep -E '^(libraries|steady);' >all.folded
cat >check.awk <<'AWK'
function wrong(why) { print "wrong: " why ": " $0; failed = 1 }
BEGIN {
	for (n = 0; n < 10; n++) {
		callers["library_" n "_leaf"] = "^library_" n "_outer$"
		callers["library_" n "_outer"] = "^call_library_" n "$"
		callers["call_library_" n] = "^churn$"
	}
	callers["called_back"] = "^library_[0-9]_outer$"
	callers["touches"] = "^(called_back|steady_leaf)$"
	callers["steady_leaf"] = "^steady_middle$"
	callers["steady_middle"] = "^steady_outer$"
	callers["churn"] = callers["steady_outer"] = "^main$"
	callers["main"] = "^__libc_start_call_main$"
	# The sampled function has no name where several libraries had its address.
	callers["[mapping replaced]"] = "^call_library_[4-9]$"
	callers["_start"] = "^(libraries|steady)$"
}
{
	samples = $NF
	sub(/ [0-9]+$/, "")
	count = split($0, frame, ";")
	reason = "whole"
	if (match($0, /\[chain ends: [^]]*\]/)) reason = substr($0, RSTART + 13, RLENGTH - 14)
	else if (frame[2] != "_start") wrong("no outermost function")
	if (/\[unmapped\]|\[not named in time\]/) wrong("an address without a name")
	if (/mapping replaced.*;/ && frame[count] != "[mapping replaced]") wrong("a caller without a name")
	for (at = 2; at <= count; at++)
		if (frame[at] in callers && frame[at - 1] !~ callers[frame[at]] && frame[at - 1] !~ /^\[chain ends/)
			wrong(frame[at - 1] " does not call " frame[at])
	# On a machine that is busy with other guests, the tables may be made only when the program calls already.
	if (/;steady_/ && reason != "whole" && reason != "program not known yet") wrong("not whole")
	group = frame[1]
	if (match($0, /library_[0-9]/)) group = substr($0, RSTART, RLENGTH)
	if (/mapping replaced/) group = "replaced"
	shares[group ", " reason] += samples
	reasons[frame[1] ", " reason] += samples
	sum[frame[1]] += samples
}
END {
	for (of in reasons) { split(of, part, ", "); printf "%s: %d samples, %.1f %%\n", of, reasons[of], 100 * reasons[of] / sum[part[1]] }
	for (of in shares) print "in " of ": " shares[of]
	exit failed
}
AWK
awk -f check.awk all.folded | sort | tee shares.txt

# There was something to check.
many() { # LEAST GROUP REASON
	between "chains of $2, $3" "$(sed -n "s/^in $2, $3: //p" shares.txt | awk '{ sum += $1 } END { print sum + 0 }')" "$1" 1000000
}
many 10 'library_[0-3]' whole
many 5 'library_[89]' whole
many 1 replaced "mappings changed meanwhile"
many 300 steady whole
