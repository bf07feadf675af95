# The guest is what tests rely on: the host's files, the PMU of the vendor and no other, cgroups, BTF, a way out for files.
# pmu: amd intel none@newest
# generations: every
. "$LAB_DIR/guest/lib.sh"

[ -r "$LAB_CHECKOUT/Cargo.toml" ] || fail "the checkout is not visible"
[ -x "$PRECISE" ] || fail "precise is not built: $PRECISE"
touch "$LAB_CHECKOUT/only-in-the-guest"
[ -r /sys/kernel/btf/vmlinux ] || fail "no BTF"
[ -e /sys/fs/cgroup/cgroup.procs ] || fail "no cgroup v2"
pmus=$(ls /sys/bus/event_source/devices)
case $LAB_VENDOR in
amd) expect "IBS" "$(grep -c ibs_ <<<"$pmus")" 2 ;;
intel) expect "PMU named cpu" "$(grep -cx cpu <<<"$pmus")" 1 ;;
none) expect "PMUs of the CPU" "$(grep -cE '^(cpu|ibs_)' <<<"$pmus" || true)" 0 ;;
esac
echo "hello from $LAB_PMU" >"$LAB_OUT/hello"
[ "$LAB_PMU" != none ] || exit 0
expect "model of the module" "$(cat "/sys/module/$LAB_MODULE/parameters/model")" "$LAB_PMU"

exact
status=0
"$FIRE" -e 'cycles count=1' -e 'op' 2>fire.err || status=$?
expect "exit status of firing at nothing" "$status" 1
