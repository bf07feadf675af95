# Each runbook's script, on work whose trouble is known: it finds it, says what to do, and keeps the evidence.
# pmu: skl zen4
# kernel: 6.12
# timeout: 300
. "$LAB_DIR/guest/lib.sh"
exact

RUNBOOKS=$LAB_DIR/../../docs/runbooks
export PRECISE
if [ "$LAB_VENDOR" = intel ]; then period=1000; else period=65536; fi

# Runs NAME.sh while `fires` fires. What it prints is in NAME.out.
runbook() { # NAME OPTION…
	local script
	mkdir -p "evidence/$1"
	EVIDENCE=evidence/$1 "$RUNBOOKS/$1.sh" "${@:2}" --duration 100s >"$1.out" 2>&1 &
	script=$!
	fires || { cat "$1.out"; fail "lab-fire"; }
	pkill -INT -x precise || fail "no precise to end"
	wait "$script" || { cat "$1.out"; fail "$1 ended with $?"; }
	cat "$1.out"
}
says() { # NAME TEXT
	tr '\n' ' ' <"$1.out" | tr -s ' ' | grep -q "$2" || fail "$1 does not say '$2'"
}
loads() { # LATENCY COUNT [LEVEL]
	local level=${3-}
	if [ "$LAB_VENDOR" = intel ]; then
		echo "load ip=target addr=0x7f0000300000 stride=64 latency=$1 source=${level:-0x7} count=$2"
	else
		echo "op load dc-miss l2-miss ip=target addr=0x7f0000300000 stride=64 latency=$1 source=${level:-1} count=$2"
	fi
}

# Two threads, each with a counter of its own in one line.
if [ "$LAB_VENDOR" = intel ]; then
	hitm() { echo "load ip=target addr=$1 latency=100 source=0x7 count=$2"; }
	store() { echo "store ip=target addr=$1 source=1 count=$2"; }
else
	hitm() { echo "op load dc-miss l2-miss ip=target addr=$1 latency=100 source=1 width=8 count=$2"; }
	store() { echo "op store ip=target addr=$1 width=8 count=$2"; }
fi
{
	hitm data+0 120
	store data+0 60
	echo "thread cpu=1"
	hitm data+8 120
	store data+8 60
} >pairs.fire
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS pairs.fire; }
runbook false-sharing -C 0,1 -c $period
says false-sharing 'FALSE SHARING'
says false-sharing 'False sharing:'

# After the deploy, what came from L3 comes from memory.
{ loads 40 300; store 0x7f0000100000 50; } >before.fire
{ if [ "$LAB_VENDOR" = intel ]; then loads 400 300 0x8; else loads 400 300 3; fi; store 0x7f0000100000 50; } >after.fire
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS before.fire; }
runbook cold-misses -C 0 -c $period
says cold-misses 'This is the baseline'
mv evidence/cold-misses/before.parquet .
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS after.fire; }
BASELINE=before.parquet runbook cold-misses -C 0 -c $period
says cold-misses 'NEW is slower'

# db streams, web suffers.
fires() {
	"$FIRE" --wait 60 --cgroup /sys/fs/cgroup/shop/db -e "$(loads 100 700)" &&
		"$FIRE" --cgroup /sys/fs/cgroup/shop/web -e "$(loads 900 600)"
}
runbook noisy-neighbour -C 0 -c $period
says noisy-neighbour 'Latency tail: .*/shop/web: 900 core cycles against 100'
[ -s evidence/noisy-neighbour/heatmap.png ] || fail "no heatmap was drawn"

# Every third access walks.
if [ "$LAB_VENDOR" = intel ]; then
	{ echo "load ip=target addr=heap latency=40 source=0x1 count=200"; echo "load ip=target addr=heap latency=700 source=0x1b count=100"; } >walks.fire
else
	{ echo "op load ip=target addr=heap count=200"; echo "op load dc-miss l2-miss tlb-miss tlb2-miss ip=target addr=heap latency=700 source=3 count=100"; } >walks.fire
fi
fires() { "$FIRE" --wait 60 --events $MEM_EVENTS walks.fire; }
runbook tlb-storm -C 0 -c $period
says tlb-storm '100 of 300'
says tlb-storm '4 KiB'
says tlb-storm 'Page walks:'

if [ "$LAB_VENDOR" = intel ]; then
	fires() { "$FIRE" --wait 60 -e 'event event=0x1c6 ip=target count=130567'; }
else
	printf '%s\n' "fetch complete ip=target latency=5 count=300" "fetch complete ic-miss ip=target latency=60 count=200" >fetch.fire
	fires() { "$FIRE" --wait 60 fetch.fire; }
fi
runbook front-end-stall -C 0 -c $period
if [ "$LAB_VENDOR" = intel ]; then
	says front-end-stall lab_fire_target
else
	says front-end-stall 'Front end:'
fi
