# A host of KVM guests: samples that are taken while a guest runs have the process that runs it, and neither the host's instruction nor
# the guest's. (The guest here is one in a guest: QEMU emulates SVM.)
# pmu: zen4 none
# timeout: 200
. "$LAB_DIR/guest/lib.sh"

# The lab's kernels are not installed, so nothing knows the order of their modules.
for module in irqbypass kvm kvm-amd; do
	find "$LAB_MODULES" -name "$module.ko*" | while read -r file; do insmod "$file"; done
done
guest=$LAB_WORKLOADS/kvm

# The report of NAME.parquet: many samples of the process are its guest's (the others are KVM's, which takes long in emulation to
# begin), and they have neither an instruction nor a name.
checked() { # NAME
	precise_report "$1" ip,function 'comm == "kvm"'
	said "$1" groups >groups.txt
	local all in_guest
	all=$(awk '{ sum += $3 } END { print sum + 0 }' groups.txt)
	in_guest=$(awk '$1 == "guest" && $2 == "guest" { sum += $3 } END { print sum + 0 }' groups.txt)
	between "$1: samples of the process" "$all" 100 100000
	between "$1: percent of them in its guest" $((100 * in_guest / all)) 20 100
	expect "$1: in the ledger" "$(said "$1" ledger 'in a guest')" "$in_guest"
	expect "$1: ledger closes" "$(said "$1" trust closes)" true
}

# The chain is that of the process: who asked KVM to run the guest.
precise_record timer -e cpu-clock -c 1000000 -g -- "$guest" 1
checked timer
said timer findings | grep "a virtual machine's guest ran" || fail "no finding says whose samples these are"
"$PRECISE" report -i timer.parquet --call-graph >chains.txt
grep -A2 '^\[in a guest\]: ' chains.txt
grep -A2 '^\[in a guest\]: ' chains.txt | grep -qE 'called by .* (__GI___)?ioctl$' || fail "the guest was not run by ioctl"
if [ "$LAB_VENDOR" = amd ]; then
	timed
	precise_record ops -a -e ibs_op// -c 100000 --by ip,process -- "$guest" 1
	checked ops
fi

# One by one, and what perf recorded of the same, which says of each sample whether a guest ran: since Linux 6.13 only if asked (G).
"$PRECISE" script -e cpu-clock -c 1000000 -- "$guest" 1 >script.txt 2>script.err || { cat script.err; fail "precise script"; }
between "lines of script in the guest" "$(grep -c 'in a guest' script.txt)" 50 100000
quiet_perf record -e cpu-clock:GH -c 1000000 -o perf.data -- "$guest" 1
"$PRECISE" import -q -o imported.parquet perf.data >import.txt
wanted=$(perf --no-pager script -D -i perf.data 2>/dev/null | grep -cE 'PERF_RECORD_SAMPLE\(IP, 0x[45]\)')
checked imported
expect "in a guest, by perf" "$wanted" "$(said imported ledger 'in a guest')"
