// SPDX-License-Identifier: GPL-2.0
/*
 * Which CPU the driver sees: its identity, CPUID, and what belongs to a CPU but not to this PMU.
 */
#include <linux/module.h>
#include <linux/vmalloc.h>
#include "unit.h"

static char *model = "skl";
module_param(model, charp, 0444);
MODULE_PARM_DESC(model, "skl (PEBS format 3), icl or spr (format 4), all as servers; adl (hybrid); guest-pebs (basic records only), nopebs");

static bool pebs = true;
module_param(pebs, bool, 0444);
MODULE_PARM_DESC(pebs, "0: a CPU without PEBS");

static const struct model models[] = {
	{ "skl", 0x55, 4, 4, 3, 3, 0, 0, false, 0x33c5 },
	{ "icl", 0x6a, 5, 8, 4, 4, 0, 0, false, 0x74c5 },
	{ "spr", 0x8f, 5, 8, 4, 4, 0, 0, true, 0x74c5 },
	{ "adl", 0x97, 5, 8, 4, 4, 6, 3, true, 0x74c5 },
	{ "guest-pebs", 0x6a, 5, 8, 4, 4, 0, 0, false, 0x34c5 },	/* no baseline: as KVM shows it since 6.9 */
	{ "nopebs", 0x55, 4, 4, 3, 0, 0, 0, false, 0x30c5 },
};

const struct model *this_model;
struct cpuinfo_x86 lab_cpu_data;

bool lab_is_small(int cpu)
{
	return this_model->small_general && cpu >= num_possible_cpus() / 2;
}

/* Leaf 0x1a: what tells the driver on which of its PMUs this CPU is. */
u8 get_this_hybrid_cpu_type(void)
{
	if (!this_model->small_general)
		return 0;
	return lab_is_small(smp_processor_id()) ? 0x20 : 0x40;	/* Atom, Core */
}

/* On a hybrid CPU, leaf 0xa has what both kinds of core have; the driver knows what big cores have beyond that. */
void lab_cpuid(u32 leaf, u32 *a, u32 *b, u32 *c, u32 *d)
{
	u8 general = this_model->small_general ?: this_model->general, fixed = this_model->small_fixed ?: this_model->fixed;
	bool v5 = this_model->arch_version >= 5;

	*a = *b = *c = *d = 0;
	if (leaf != 0xa)
		return;
	*a = this_model->arch_version | general << 8 | 48 << 16 | 7 << 24;
	*c = v5 ? BIT(fixed) - 1 : 0;
	*d = fixed | 48 << 5 | v5 << 15;
}

static void become_model(void)
{
	static const u16 features[] = { X86_FEATURE_ARCH_PERFMON, X86_FEATURE_DS, X86_FEATURE_DTES64, X86_FEATURE_PDCM,
					X86_FEATURE_CONSTANT_TSC };
	int i;

	lab_cpu_data = boot_cpu_data;
	lab_cpu_data.x86_vendor = X86_VENDOR_INTEL;
	lab_cpu_data.x86 = 6;
	lab_cpu_data.x86_model = this_model->family_model;
	lab_cpu_data.x86_stepping = 7;
	lab_cpu_data.microcode = ~0u;	/* no erratum that an update mends */
	for (i = 0; i < ARRAY_SIZE(features); i++)
		set_cpu_cap(&lab_cpu_data, features[i]);
	if (pebs && this_model->pebs_format)
		set_cpu_cap(&lab_cpu_data, X86_FEATURE_PEBS);
	if (this_model->small_general)
		set_cpu_cap(&lab_cpu_data, X86_FEATURE_HYBRID_CPU);
	clear_bit(X86_FEATURE_HYPERVISOR, (unsigned long *)lab_cpu_data.x86_capability);
}

int lab_model_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(models) && strcmp(models[i].name, model); i++)
		;
	if (i == ARRAY_SIZE(models))
		return -EINVAL;
	this_model = &models[i];
	become_model();
	return 0;
}

static struct cpu_entry_area *entry_areas[NR_CPUS];

struct cpu_entry_area *lab_entry_area(int cpu)
{
	if (!entry_areas[cpu])
		entry_areas[cpu] = vzalloc(sizeof(struct cpu_entry_area));
	return entry_areas[cpu];
}

/* ---- what the driver refers to and this PMU does not have ---- */

int p4_pmu_init(void) { return -ENODEV; }
int p6_pmu_init(void) { return -ENODEV; }
int knc_pmu_init(void) { return -ENODEV; }
int zhaoxin_pmu_init(void) { return -ENODEV; }
void intel_bts_enable_local(void) { }
void intel_bts_disable_local(void) { }
int intel_bts_interrupt(void) { return 0; }
void intel_pt_interrupt(void) { }
int is_intel_pt_event(struct perf_event *event) { return 0; }
void hardlockup_detector_perf_stop(void) { }
void hardlockup_detector_perf_restart(void) { }
DEFINE_STATIC_CALL_RET0(__perf_guest_state, *perf_guest_cbs->state);
DEFINE_STATIC_CALL_RET0(__perf_guest_get_ip, *perf_guest_cbs->get_ip);
DEFINE_STATIC_CALL_RET0(__perf_guest_handle_intel_pt_intr, *perf_guest_cbs->handle_intel_pt_intr);
DEFINE_STATIC_CALL_RET0(perf_snapshot_branch_stack, perf_snapshot_branch_stack_t);
