#!/bin/bash
# Whose memory accesses are slow, since when, and who makes them so?
. "$(dirname "$0")/common.sh"

record loads -e loads --by cgroup,source,latency --epoch 500ms "$@"
show latency loads --by cgroup
show report loads --by cgroup,level
"$PRECISE" heatmap -i "$evidence/loads.parquet" --panels cgroup -o "$evidence/heatmap.png"
conclude loads
