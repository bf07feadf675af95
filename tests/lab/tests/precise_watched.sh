# -G by pattern, with precise samples: a cgroup that is made while the run goes on counts, with what is below it; one with another name does not.
# pmu: skl zen4
# timeout: 150
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	event=loads period=1000 load='load ip=target addr=heap latency=200 source=0x7'
else
	event=loads period=65536 load='op load ip=target addr=heap latency=200 source=1'
fi
bazaar=/sys/fs/cgroup/bazaar
mkdir -p $bazaar/web-1
fires() {
	"$FIRE" --wait 60 --cgroup $bazaar/web-1 -e "$load count=70" &&
		mkdir $bazaar/db $bazaar/web-2 $bazaar/web-2/worker && sleep 1 &&
		"$FIRE" --cgroup $bazaar/web-2/worker -e "$load count=50" &&
		"$FIRE" --cgroup $bazaar/db -e "$load count=30" &&
		"$FIRE" -e "$load count=20" && sleep 1
} >fired.txt
precise_whole watched -C 0 -e $event -c $period -G '/bazaar/web-*' --by ip,cgroup
cat fired.txt
account watched 170 120
precise_report watched cgroup
expect "cgroups" "$(said watched groups | awk '{print $1, $2}' | sort | tr '\n' ' ')" "/bazaar/web-1 70 /bazaar/web-2/worker 50 "
