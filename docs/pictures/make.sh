#!/usr/bin/env bash
# Makes heatmap.png and report.png: two services that fault in pages, each in a cgroup of its own.
# As root, on a quiet machine, after `cargo build --release`. report.png needs chromium.
set -euo pipefail
cd "$(dirname "$0")"
precise=$(realpath "${PRECISE:-../../target/release/precise}")
root=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)
# The pictures show this path, so it is the same each time.
work=/srv/demo
mkdir "$work"
cleanup() {
	wait
	rmdir "$root/demo/ingest.service" "$root/demo/cache.service" "$root/demo"
	rm -r "$work"
}
trap cleanup EXIT
for service in ingest cache; do
	cp "../examples/$service.c" "$work"
	(cd "$work" && gcc -O1 -g -o "$service" "$service.c")
	mkdir -p "$root/demo/$service.service"
	sh -c "echo \$\$ >'$root/demo/$service.service/cgroup.procs'; exec '$work/$service' 22" &
done
"$precise" record -a -e page-faults -c 1 --by ip,address,cgroup,process --granule 4K --table-cells 64K \
	--duration 20s --epoch 250ms -G '/demo/*' -o "$work/demo.parquet" --plot heatmap.png
"$precise" report -i "$work/demo.parquet" --html "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/browser" \
	--window-size=1100,1500 --screenshot=report.png "file://$work/report.html"
