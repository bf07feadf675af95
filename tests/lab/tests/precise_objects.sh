# Who made the memory that loads hit: pages that two functions touch, with callers, and one that nobody touches, each with its loads.
# Each vendor and each kernel once.
# pmu: skl@6.12 zen4@6.1
# timeout: 90
. "$LAB_DIR/guest/lib.sh"
exact

if [ "$LAB_VENDOR" = intel ]; then
	event=loads load='load ip=target source=0x7'
else
	event=ibs_op// load='op load ip=target source=1'
fi
fires() {
	# The loads sample first, and the page faults soon after them; then the callers of this program are known after a while.
	"$FIRE" --wait 60 --events 1 -e "sleep ms=9000" -e "touch addr=data stride=4096 count=2" -e "grow addr=data+8192 stride=4096 count=3" \
		-e "$load addr=data+8 stride=4096 latency=100 count=2" -e "$load addr=data+8200 stride=4096 latency=400 count=3" \
		-e "$load addr=data+20488 latency=50 count=4" -e "$load addr=data+8 latency=100 count=10" >fired.txt
	# As in precise_stacks: the first names take seconds.
	sleep 6
}
precise_whole objects -C 0 -e $event -e page-faults -g --by ip,address,process --granule 64
precise_report objects object
said objects groups | awk '{ print $1, $2 }' |
	sed -E 's/^[^ ]*lab_fire_grow_←_[^ ]+/grown/; s/^[^ ]*lab_fire_touch_←_[^ ]+/touched/' | sort | tee objects.txt
printf '%s\n' "grown 3" "no-touch 4" "touched 12" >wanted.txt
diff objects.txt wanted.txt || fail "the objects are not those that were touched"
