# Types of the kernel's code by its own description of them (BTF), without debug information: one function of 64.
# pmu: skl
# timeout: 120
. "$LAB_DIR/guest/lib.sh"

"$LAB_BIN/bench-kernel-types" / 64 | tee said || fail "fewer than 45 % of the accesses through pointers have a type"
typed=$(awk '/variables of the CPU/ {print $8 * 100 / $1}' said)
between "types of variables of the CPU, in percent" "${typed%.*}" 90 100
# What the whole kernel's figures come from, on a machine that is not emulated: with the vmlinux of the lab as
# proc/kcore, `bench-kernel-types FOLDER` asks for all of it.
mkdir -p "$LAB_OUT/root/proc" "$LAB_OUT/root/sys/kernel/btf"
cp /proc/kallsyms "$LAB_OUT/root/proc/"
cp /sys/kernel/notes "$LAB_OUT/root/sys/kernel/"
cp /sys/kernel/btf/vmlinux "$LAB_OUT/root/sys/kernel/btf/"
