# Types of the kernel's code by its own description of them (BTF), without debug information: one function of 64.
# pmu: skl none@newest
# timeout: 120
. "$LAB_DIR/guest/lib.sh"

"$LAB_BIN/bench-kernel-types" / 64 btf 45 | tee said || fail "fewer than 45 % of the accesses through pointers have a type"
typed=$(awk '/variables of the CPU/ {print $8 * 100 / $1}' said)
between "types of variables of the CPU, in percent" "${typed%.*}" 90 100
# For the whole kernel, on a machine that is not emulated, and with debug information:
# `cargo xtask bench kernel-types`.
