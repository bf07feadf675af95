# That the guest is what it should be.
. "$LAB_DIR/guest/lib.sh"
uname -r; id; pwd; cat /proc/uptime; dmesg | tail -3; ls /sys/bus/event_source/devices /sys/fs/cgroup; cat /dev/lab-pmu; grep -m3 -E 'family|vendor|model name' /proc/cpuinfo; ls -la "$PRECISE"; touch $LAB_OUT/x
