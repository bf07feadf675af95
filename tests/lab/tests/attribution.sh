# Samples of a real program: every (instruction, address) pair is one that the program really makes.
# kernel: 6.12
# timeout: 120
. "$LAB_DIR/guest/lib.sh"
timed 10

walk=$LAB_WORKLOADS/walk
case $LAB_VENDOR in
amd) quiet_perf record -C 0 -e ibs_op// -c 65536 -d -o walk.data -- taskset -c 0 "$walk" 3 ;;
intel) quiet_perf record -e "$(loads_event 30)" -c 20011 -d -o walk.data -- taskset -c 0 "$walk" 3 ;;
esac

# Which instruction of walk() touches which field, by the disassembly: the displacement is the field's offset, plus the same
# constant for all where the compiler has moved the pointer on.
samples walk.data ip,sym,addr | awk '$3 == "walk" && $1 != "0" {print substr($1, length($1) - 1), $2}' >pairs
echo "samples with an address in walk(): $(wc -l <pairs)"
awk '{print substr($1, length($1)), substr($2, length($2) - 1)}' pairs | sort | uniq -c
between "samples with an address" "$(wc -l <pairs)" 200 1000000
# Nodes are 64 bytes: an instruction that touched two offsets modulo 64 was given a sample of another.
awk '{
	nibbles = "0123456789abcdef"
	offset = ((index(nibbles, substr($1, 1, 1)) - 1) * 16 + index(nibbles, substr($1, 2, 1)) - 1) % 64
	seen[$2] = seen[$2] == "" || seen[$2] == offset ? offset : "two"
	fields[offset]++
} END {
	for (ip in seen) if (seen[ip] == "two") { print ip " touches two fields"; bad = 1 }
	for (offset in fields) if (offset != 48 && offset != 8 && offset != 24 && offset != 56) { print "offset " offset; bad = 1 }
	print length(seen) " instructions"
	exit bad
}' pairs || fail "samples of one instruction have the addresses of another"
