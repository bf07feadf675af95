# What the runbooks share: `. "$(dirname "$0")/common.sh"`.
# shellcheck shell=bash
set -euo pipefail

PRECISE=${PRECISE:-precise}
evidence=${EVIDENCE:-$(mktemp -d "/tmp/precise-$(basename "$0" .sh).XXXXXX")}
mkdir -p "$evidence"

# Records for 10 seconds, unless the arguments say otherwise, into NAME.parquet; what `record` says of it is kept as well.
# Returns 1 if this machine does not have the event. Any other failure ends the script.
record() { # NAME OPTION…
	local code=0
	"$PRECISE" record --quiet -o "$evidence/$1.parquet" "${@:2}" >"$evidence/$1.record.txt" || code=$?
	case $code in
	0) ;;
	66) return 1 ;;
	*) exit $code ;;
	esac
}

# Records what every machine can: where the CPU time goes, and which code takes new pages of memory. For virtual machines
# without PEBS and IBS. MISSING says what these would show.
record_software() { # NAME MISSING OPTION…
	printf '\nSampling CPU time and page faults instead. A machine with PEBS or IBS would also show\n%s.\n' "$2"
	record "$1" -e cpu-clock,page-faults --by ip,address,cgroup,process --granule 4K --epoch 500ms "${@:3}"
}

# Shows a view of a capture, and keeps it.
show() { # VIEW NAME OPTION…
	printf '\n$ precise %s -i %s\n' "$1${3:+ ${*:3}}" "$2.parquet"
	"$PRECISE" "$1" -i "$evidence/$2.parquet" "${@:3}" | tee "$evidence/$2.$1.txt"
}

# Findings, and where it all is.
conclude() { # NAME
	printf '\n$ precise explain %s.parquet\n' "$1"
	"$PRECISE" explain "$evidence/$1.parquet" | tee "$evidence/$1.explain.txt"
	printf '\nThe evidence is in %s\n' "$evidence"
}
