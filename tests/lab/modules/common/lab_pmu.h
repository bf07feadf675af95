/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of the lab's emulated PMUs, shared by the modules and by lab-fire (tests/lab/fire.rs mirrors it).
 *
 * /dev/lab-pmu takes one ioctl, LAB_FIRE: it makes things happen on the CPU that the caller runs on, as if the caller
 * had done them. It returns when the last interrupt has been handled, so counts are exact. The caller should be pinned.
 *
 *  LAB_LOAD, LAB_STORE   count samples of the PEBS load (store) events: each one is "a whole period has passed, and this
 *                        instruction was taken". `source` is the raw data source encoding of the PEBS record.
 *  LAB_PRECISE           the same for PEBS events that are neither.
 *  LAB_EVENT             count occurrences of `event` (event select | umask << 8, of Intel's manual: 0x3c cycles, 0xc0
 *                        instructions): counters advance by count, and overflow as often as that makes them.
 *  LAB_IBS_OP            count samples of ibs_op; the registers are given in `op`, the address register in `addr`.
 *  LAB_IBS_FETCH         count samples of ibs_fetch; the registers are given in `fetch`, the address register in `ip`.
 *
 * Sample i (0 <= i < count) has data address addr + i * stride. ip 0 means the caller's own.
 *
 * Errors: EAGAIN when nothing on this CPU counts what was fired (no event, disabled, throttled); EINVAL for a kind that
 * this PMU does not have or a wrong size; EINTR at a signal. `done` says how much of count happened in any case, `taken`
 * how many samples (records or interrupts) came of it: fewer than done where the event's own filter (ldlat, l3missonly,
 * user or kernel only) refused some.
 *
 * read() gives "records N interrupts N lost N\n": since the module was loaded, on all CPUs.
 */
#ifndef LAB_PMU_H
#define LAB_PMU_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum lab_kind {
	LAB_LOAD = 1,
	LAB_STORE = 2,
	LAB_PRECISE = 3,
	LAB_EVENT = 4,
	LAB_IBS_OP = 5,
	LAB_IBS_FETCH = 6,
};

struct lab_fire {
	__u32 size;	/* sizeof(struct lab_fire) */
	__u32 kind;
	__u64 count;
	__u64 ip;
	__u64 addr;
	__u64 stride;
	__u64 latency;	/* Intel: cycles of a load */
	__u64 source;	/* Intel: raw data source encoding */
	__u64 event;	/* LAB_EVENT only */
	union {
		struct {
			__u64 data, data2, data3, phys, target, data4;
		} op;
		struct {
			__u64 ctl, phys, ctl_ext;
		} fetch;
	};
	__u64 done;	/* out */
	__u64 taken;	/* out */
};

#define LAB_FIRE _IOWR('L', 1, struct lab_fire)

#endif
