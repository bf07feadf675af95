#!/bin/bash
# Which cache lines do cores take from each other, and do they need to?
. "$(dirname "$0")/common.sh"

record lines -e c2c "$@"
show c2c lines
conclude lines
