# Types of real loads: programs in C, C++ and Rust print where their members are, and the address of each sample says which member it is.
# One vendor, because a type follows from the code and the debug information; zen4 has the fields of precise_advice.
# pmu: skl
# kernel: 6.12
# timeout: 240
. "$LAB_DIR/guest/lib.sh"
timed 10

fires() {
	# The recorder counts before it samples.
	"$FIRE" --wait 60 -e "sleep ms=5000"
	# The CPU that is sampled has the programs only: samples of what their processes ran before, the shell and taskset, in the same epoch,
	# would be named by the programs' maps.
	(
		taskset -c -p 1 "$BASHPID" >pinned.txt
		for language in c cc rs; do
			taskset -c 0 "$LAB_WORKLOADS/shapes-$language" "${ROUNDS:-25000}" >"$language.printed"
		done
	)
	# As in precise_stacks: the first names take seconds.
	sleep 4
}
precise_whole shapes -C 0 -e loads -c 20011 --granule 1 --by ip,address,process,thread
"$PRECISE" report -i shapes.parquet --json -n 1000000 --by process,field,address >fields.json
for language in c cc rs; do
	"$LAB_BIN/lab-fields" "$language.printed" "shapes-$language" fields.json 98 || fail "fields of shapes-$language"
done
# What the addresses confirm of their objects is right, and they contradict nothing. (The loader of programs has structs, too.)
"$PRECISE" types -i shapes.parquet -x'|' -n 10000 >types.csv
checked() { # COLUMN
	awk -F'|' -v name="$1" 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next}
		$at["type"] ~ /^(item|owner|list|shape|Order|Shared|shapes::.*)$/ {sum += $at[name]} END {print sum + 0}' types.csv
}
expect "contradicted by addresses" "$(checked contradicted)" 0
between "confirmed by addresses" "$(checked confirmed)" 30 10000000
