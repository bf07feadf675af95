# Every filter term, alone and combined, against a script that holds both sides of it: what passes, and which clause rejected the rest.
# pmu: skl spr@6.12 zen4
# timeout: 400
. "$LAB_DIR/guest/lib.sh"
# All terms on 6.12, and on 6.1, which reads a sample in another way, on zen4; on skl with 6.1 those of the sample itself, some of which zen4
# has not there; on spr what skl has not.
of_the_sample_only=
[ "$LAB_PMU $LAB_KERNEL" != "skl 6.1" ] || of_the_sample_only=yes
exact
chmod 666 /dev/lab-pmu
mkdir -p /sys/fs/cgroup/lab/a /sys/fs/cgroup/lab/b

# Groups of samples: name, how many, line of lab-fire. No two have the same number.
# `other` comes from another process: CPU, user, group, name and cgroup are its own.
if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000
	cat >groups <<-X
		l1 1 load ip=target addr=heap latency=40 source=0x1
		l2 2 load ip=target+4 addr=0x7f0000100000 latency=45 source=0x3
		hitm 3 load ip=target addr=0x7f0000200000 latency=200 source=0x7
		ram 5 load ip=target addr=0x7f0000300000 latency=700 source=0x1b
		locked 8 load ip=target addr=0x7f0000400000 latency=60 source=0x23
		pmem 13 load ip=target addr=0x7f0000500000 latency=900 source=0x8
		lfb 21 load ip=target addr=0x7f0000600000 latency=50 source=0x2
		kernel 34 load ip=0xffffffff81000010 addr=0x7f0000700000 latency=70 source=0x6
		forward 55 load ip=target addr=0x7f0000800000 latency=300 source=0xc
		other 89 load ip=target addr=0x7f0000900000 latency=100 source=0x5
		waited 144 load ip=target addr=0x7f0000a00000 latency=42 source=0x41
		alias 233 load ip=target addr=0x7f0000b00000 latency=43 source=0x81
	X
else
	event=ibs_op// period=65536
	cat >groups <<-X
		l1 1 op load ip=target addr=heap phys=0x12340000
		l2 2 op load dc-miss ip=target+4 addr=0x7f0000100000 latency=20
		hitm 3 op load ip=target addr=0x7f0000200000 latency=200 source=1
		ram 5 op load tlb-miss tlb2-miss ip=target addr=0x7f0000300000 latency=700 source=3
		locked 8 op load locked ip=target addr=0x7f0000400000
		far 13 op load remote ip=target addr=0x7f0000500000 latency=900 source=3
		tlb2 21 op load tlb-miss ip=target addr=0x7f0000600000
		kernel 34 op load ip=0xffffffff81000010 addr=0x7f0000700000
		near 55 op load ip=target addr=0x7f0000800000 latency=300 source=2
		other 89 op store ip=target addr=0x7f0000900000
		plain 144 op ip=target
	X
fi
grep -v '^other' groups | while read -r _ count line; do echo "$line count=$count"; done >most.fire
grep '^other' groups | while read -r _ count line; do echo "$line count=$count"; done >other.fire
total=$(awk '{sum += $2} END {print sum}' groups)
everything=$(awk '{print $1}' groups | tr '\n' ' ')

# Both are there before the recorder is, so that a filter can name them.
start() {
	bash -c 'echo $$ >/sys/fs/cgroup/lab/a/cgroup.procs; exec "$0" --wait 90 --comm most most.fire >most.txt' "$FIRE" &
	most=$!
	bash -c 'echo $$ >/sys/fs/cgroup/lab/b/cgroup.procs
		exec setpriv --reuid 1000 --regid 100 --clear-groups "$0" --wait 90 --cpu 1 --comm other other.fire >other.txt' "$FIRE" &
	other=$!
}
fires() { wait "$most" && wait "$other"; }

sum() { # GROUP…: how many samples they are
	local name sum=0
	for name in "$@"; do sum=$((sum + $(awk -v name="$name" '$1 == name {print $2; found = 1} END {exit !found}' groups))); done
	echo "$sum"
}

without() { # FROM-LIST GROUP…: the list without these
	local list=" $1 " name
	for name in "${@:2}"; do list=${list/ $name / }; done
	echo "$list"
}

number=0
# Records with FILTER and expects the groups that pass, no more. PID and OTHER in it are the processes.
kept() { # FILTER GROUP…
	number=$((number + 1))
	start
	local filter=${1//MOST/$most} name=filter$number
	filter=${filter//OTHER/$other}
	echo "--- $filter"
	local kept status=0
	kept=$(sum "${@:2}")
	# Nothing passed: that is what the exit status says.
	[ "$kept" != 0 ] || status=69
	RECORD_STATUS=$status precise_whole $name -a -e "$event" -c $period --by cpu --filter "$filter"
	account $name "$total" "$kept"
}
first() { # CLAUSE GROUP…: of the filter before, this clause was the first to reject these groups
	expect "rejected by $1" "$(said filter$number rejected | grep -F "$1" | grep -o '[0-9]*$')" "$(sum "${@:2}")"
}

all_but() { without "$everything" "$@"; }

if [ "$LAB_PMU" = spr ]; then
	kept 'mem_blk == data' waited
	kept 'mem_blk == addr' alias
	exit 0
fi

# shellcheck disable=SC2046  # lists of groups are words
{
	# Who and where: the same with every PMU.
	if [ -z "$of_the_sample_only" ]; then
		kept 'addr in 0x7f0000200000..0x7f0000400000' hitm ram
		kept 'ip >= 0xffffffff80000000' kernel
		kept 'kernel' kernel
		kept 'mode == user' $(all_but kernel)
		kept 'cpu == 1' other
		kept 'uid == 1000' other
		kept 'gid != 100' $(all_but other)
		kept 'comm == other' other
		kept 'cgroup == /lab/a' $(all_but other)
		kept 'cgroup == /lab' $everything
		kept 'pid == OTHER' other
		kept 'tid in {1, MOST}' $(all_but other)
	fi
	kept 'mem_lvl == l2' l2 $([ "$LAB_VENDOR" = amd ] || echo locked)
	# What the kernel looks up for the sample itself, 6.1 looks up behind the filter.
	too_late() {
		RECORD_STATUS=66 precise_record late -a -e "$event" --filter "$1"
		grep -q '6\.3' late.txt || fail "nothing says which kernel can filter by $1"
	}
	if [ "$LAB_KERNEL" = 6.1 ]; then too_late 'data_pgsz == 4K'; else kept 'data_pgsz == 4K' l1; fi
	if [ "$LAB_VENDOR" = intel ]; then
		if [ "$LAB_KERNEL" = 6.1 ]; then too_late 'phys_addr > 0'; else kept 'phys_addr > 0' l1; fi
		kept 'latency >= 200' hitm ram pmem forward
		kept 'latency in 43..61' l2 locked lfb alias
		kept 'mem_op != load'
		kept 'mem_lvl in {l3, ram}' hitm ram kernel other
		kept 'mem_lvl == lfb || mem_lvl == pmem' lfb pmem
		kept 'mem_snoop == hitm' hitm
		kept 'mem_snoop in {fwd, miss}' forward other
		kept 'mem_dtlb == l2_miss' ram
		kept 'mem_dtlb == any_hit' $(all_but ram)
		kept 'mem_lock == locked' locked
		kept 'mem_remote == remote' ram forward
		kept 'mem_hops > 0'
		kept 'mem_blk == na' $everything
		# Together: each clause counts what it was the first to reject.
		kept 'latency > 60, mem_lvl in {l3, pmem}, user && uid == 0 && !(addr < 0x7f0000300000)' pmem
		first 'latency' l1 l2 locked lfb waited alias
		first 'mem_lvl' ram forward
		first 'user' kernel
		first 'uid' other
		first 'addr' hitm
		kept '(mem_lvl == ram || mem_snoop == hitm) && cgroup == /lab/a || comm == other && cpu == 1' ram hitm other
		# As many compares as there are.
		kept 'latency in {40, 45, 200, 700, 60, 900, 50, 1, 2, 3, 4, 5, 6, 7, 8}, user' l1 l2 hitm ram locked pmem lfb
	else
		kept 'phys_addr in 0x12340000..0x12341000' l1
		kept 'latency >= 200' hitm ram far near
		kept 'latency in 20..201' l2 hitm
		kept 'mem_op == store' other
		kept 'mem_op == na' plain
		kept 'mem_lvl in {l3, ram}' hitm ram far
		kept 'mem_dtlb == l1_hit' $(all_but ram tlb2 plain)
		kept 'mem_dtlb == l2_hit' tlb2
		kept 'mem_dtlb == l2_miss' ram
		kept 'mem_lock == locked' locked
		kept 'mem_remote == remote' far near
		kept 'mem_blk == na' $everything
		if [ "$LAB_KERNEL" != 6.1 ]; then
			kept 'mem_snoop == hitm' hitm near
			kept 'mem_hops == hops0' near
			kept 'mem_hops > 1' far
		fi
		kept 'latency == 0 || latency > 250, mem_op == load, user && uid == 0 && !(addr < 0x7f0000300000)' l1 ram locked far tlb2 near
		first 'latency' l2 hitm
		first 'mem_op' other plain
		first 'user' kernel
		kept '(mem_lvl == ram || mem_lock == locked) && cgroup == /lab/a || comm == other' ram far locked other
		kept 'latency in {20, 200, 700, 900, 300, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, user' l2 hitm ram far near
	fi
	# Both ways to read a sample.
	start
	precise_whole probe -a -e "$event" -c $period --by cpu --read-path probe --filter 'latency > 150 && addr < 0x7f0000300000 && comm == most'
	account probe "$total" "$(sum hitm)"
}
