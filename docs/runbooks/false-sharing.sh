#!/bin/bash
# Which cache lines do cores take from each other, and do they need to?
. "$(dirname "$0")/common.sh"

if record lines -e c2c "$@"; then
	show c2c lines
else
	record_software lines 'which cache lines move between cores, and which threads use them' "$@"
	show report lines --by function,line
fi
conclude lines
