#!/usr/bin/env bash
# Makes heatmap.png: two services that fault in pages, each in a cgroup of its own. As root, on a quiet machine, after `cargo build --release`.
set -euo pipefail
cd "$(dirname "$0")"
precise=${PRECISE:-../../target/release/precise}
root=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)
work=$(mktemp -d)
cleanup() {
	wait
	rmdir "$root/demo/ingest.service" "$root/demo/cache.service" "$root/demo"
	rm -r "$work"
}
trap cleanup EXIT
for service in ingest cache; do
	gcc -O1 -g -o "$work/$service" "$service.c"
	mkdir -p "$root/demo/$service.service"
	sh -c "echo \$\$ >'$root/demo/$service.service/cgroup.procs'; exec '$work/$service' 22" &
done
"$precise" record -a -e page-faults -c 1 --by ip,address,cgroup,process --granule 4K --table-cells 64K \
	--duration 20s --epoch 250ms -G '/demo/*' -o "$work/demo.parquet" --plot heatmap.png
