#!/bin/bash
# Whose memory accesses are slow, since when, and who makes them so?
. "$(dirname "$0")/common.sh"

if record loads -e loads --by cgroup,source,latency --epoch 500ms "$@"; then
	show latency loads --by cgroup
	show report loads --by cgroup,level
	event=()
else
	record_software loads 'whose loads became slower, and which memory answers them' "$@"
	show report loads --by cgroup
	event=(-e page-faults)
fi
"$PRECISE" heatmap -i "$evidence/loads.parquet" --panels cgroup "${event[@]}" -o "$evidence/heatmap.png" ||
	printf 'No heatmap was drawn.\n'
conclude loads
