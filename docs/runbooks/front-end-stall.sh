#!/bin/bash
# Does the core wait for instructions, and for which code?
. "$(dirname "$0")/common.sh"

record fetches -e fetch "$@"
show fetch fetches
conclude fetches
