#!/bin/bash
# How many accesses need a page walk, whose are they, and on pages of which size?
. "$(dirname "$0")/common.sh"

dimensions=ip,cgroup,process,source,latency
# Before Linux 6.3 the size of a page is not known in time.
if [ "$(printf '6.3\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.3 ]; then dimensions+=,page-size; fi
if record walks -e mem --by $dimensions "$@"; then
	show tlb walks
else
	record_software walks 'how many accesses need a page walk, and on pages of which size' "$@"
	show report walks --by function,region
fi
conclude walks
