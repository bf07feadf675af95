#!/bin/bash
# Does the core wait for instructions, and for which code?
. "$(dirname "$0")/common.sh"

if record fetches -e fetch "$@"; then
	show fetch fetches
else
	record_software fetches 'which fetches of code missed the cache or the TLB' "$@"
	show report fetches --by module
	show report fetches --by function
fi
conclude fetches
