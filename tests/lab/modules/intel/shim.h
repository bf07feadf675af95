/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included by force before each of the kernel's arch/x86/events files: first every header that they use, then macros that
 * turn what they do to the CPU (MSRs, RDPMC, CPUID, identity, cpu_entry_area, APIC, hotplug, NMI registration) into
 * calls of ours. The files themselves stay as they are.
 *
 * A name that one kernel version has and another has not is defined all the same: rdmsrl became rdmsrq, for one.
 * What is silent and dangerous after a kernel update is an *exported* function that touches the hardware
 * (msr_set_bit was one): compare `nm -u` of the module with Module.symvers.
 */
#ifndef LAB_SHIM_H
#define LAB_SHIM_H

/* Data that is not exported but used by inline functions of the headers, so this one comes before them. */
#define sysctl_perf_event_paranoid (*lab_paranoid)

#include <linux/module.h>
#include <linux/version.h>
#include <linux/perf_event.h>
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/cpu.h>
#include <linux/device.h>
#include <linux/export.h>
#include <linux/hardirq.h>
#include <linux/init.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/mm.h>
#include <linux/nmi.h>
#include <linux/nospec.h>
#include <linux/notifier.h>
#include <linux/sched/clock.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <asm/alternative.h>
#include <asm/apic.h>
#include <asm/cpu_device_id.h>
#include <asm/cpu_entry_area.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/hardirq.h>
#include <asm/ibt.h>
#include <asm/insn.h>
#include <asm/intel-family.h>
#include <asm/intel_ds.h>
#include <asm/intel_pt.h>
#include <asm/io.h>
#include <asm/ldt.h>
#include <asm/mmu_context.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/perf_event.h>
#include <asm/processor.h>
#include <asm/smp.h>
#include <asm/stacktrace.h>
#include <asm/timer.h>
#include <asm/tlbflush.h>
#include <asm/unwind.h>
#include <asm/uprobes.h>
#if __has_include(<asm/cpuid/api.h>)
#include <asm/cpuid/api.h>
#endif
#if __has_include(<linux/kvm_types.h>)
#include <linux/kvm_types.h>
#endif

/* of our files */
u64 lab_rdmsr(u32 msr);
void lab_wrmsr(u32 msr, u64 value);
void lab_wrmsr_on(int cpu, u32 msr, u64 value);
u64 lab_rdpmc(u32 counter);
void lab_cpuid(u32 leaf, u32 *a, u32 *b, u32 *c, u32 *d);
int lab_take_nmi(nmi_handler_t fn);
int lab_hotplug(int state, int (*up)(unsigned int cpu));
void lab_apic_write(u32 reg, u32 value);
struct cpu_entry_area *lab_entry_area(int cpu);
extern struct cpuinfo_x86 lab_cpu_data;
extern u64 *lab_clock_offset;

#ifndef LAB_UNIT

#undef CONFIG_CPU_SUP_AMD
#undef CONFIG_CPU_SUP_ZHAOXIN

/* MSRs and counters */
#undef rdmsr
#undef wrmsr
#undef rdmsrl
#undef wrmsrl
#undef rdmsrl_safe
#undef wrmsrl_safe
#undef rdmsrq
#undef wrmsrq
#undef rdmsrq_safe
#undef wrmsrq_safe
#undef rdpmc
#undef rdpmcl
#define rdmsrl(msr, v) ((v) = lab_rdmsr(msr))
#define rdmsrq(msr, v) ((v) = lab_rdmsr(msr))
#define wrmsrl(msr, v) lab_wrmsr((msr), (v))
#define wrmsrq(msr, v) lab_wrmsr((msr), (v))
#define rdmsrl_safe(msr, p) (*(p) = lab_rdmsr(msr), 0)
#define rdmsrq_safe(msr, p) (*(p) = lab_rdmsr(msr), 0)
#define wrmsrl_safe(msr, v) (lab_wrmsr((msr), (v)), 0)
#define wrmsrq_safe(msr, v) (lab_wrmsr((msr), (v)), 0)
#define rdmsr(msr, lo, hi) do { u64 __v = lab_rdmsr(msr); (lo) = (u32)__v; (hi) = __v >> 32; } while (0)
#define wrmsr(msr, lo, hi) lab_wrmsr((msr), ((u64)(hi) << 32) | (u32)(lo))
#define native_write_msr(msr, lo, hi) lab_wrmsr((msr), ((u64)(hi) << 32) | (u32)(lo))
#define wrmsr_on_cpu(cpu, msr, lo, hi) (lab_wrmsr_on((cpu), (msr), ((u64)(hi) << 32) | (u32)(lo)), 0)
#define wrmsrq_on_cpu(cpu, msr, v) (lab_wrmsr_on((cpu), (msr), (v)), 0)
#define msr_set_bit(msr, bit) (lab_wrmsr((msr), lab_rdmsr(msr) | BIT_ULL(bit)), 1)
#define msr_clear_bit(msr, bit) (lab_wrmsr((msr), lab_rdmsr(msr) & ~BIT_ULL(bit)), 1)
#define rdpmcl(counter, v) ((v) = lab_rdpmc(counter))
#define rdpmc(counter) lab_rdpmc(counter)

/* which CPU this is: a copy of boot_cpu_data, so that the guest's own stays true */
#define boot_cpu_data lab_cpu_data
#define cpuid(leaf, a, b, c, d) lab_cpuid(leaf, a, b, c, d)
#define cpuid_count(leaf, sub, a, b, c, d) lab_cpuid(leaf, a, b, c, d)
#undef static_cpu_has
#undef cpu_feature_enabled
#undef this_cpu_has
#define static_cpu_has(bit) boot_cpu_has(bit)
#define cpu_feature_enabled(bit) boot_cpu_has(bit)
#define this_cpu_has(bit) boot_cpu_has(bit)
#define setup_clear_cpu_cap(bit) do { } while (0)
#undef topology_max_smt_threads
#define topology_max_smt_threads() 1

/* the DS area is plain memory here: nothing but pebs.c writes to it */
#define get_cpu_entry_area(cpu) lab_entry_area(cpu)
#define cea_set_pte(...) do { } while (0)
#define flush_tlb_kernel_range(...) do { } while (0)
/* cpu_debug_store, 4 KB of the 8 KB that modules have per CPU, is for the kernel's own cpu_entry_area only */
#undef DEFINE_PER_CPU_PAGE_ALIGNED
#define DEFINE_PER_CPU_PAGE_ALIGNED(type, name) type lab_unused_##name

/* interrupts, hotplug, clock */
#undef cpuhp_setup_state
#define cpuhp_setup_state(state, name, up, down) ((void)(down), lab_hotplug((state), up))
#define cpuhp_remove_state(state) do { } while (0)
#undef register_nmi_handler
#define register_nmi_handler(type, fn, ...) lab_take_nmi(fn)
#undef nmi_uaccess_okay
#define nmi_uaccess_okay() true
#define apic_write(reg, v) lab_apic_write((reg), (v))
#undef inc_irq_stat
#define inc_irq_stat(counter) do { } while (0)
#define __sched_clock_offset (*lab_clock_offset)
#define cr4_update_pce lab_cr4_update_pce
static inline void lab_cr4_update_pce(void *unused) { }

/* being part of a module instead of the kernel */
#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#undef EXPORT_SYMBOL
#define EXPORT_SYMBOL(name)
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(name)
#undef EXPORT_SYMBOL_FOR_KVM
#define EXPORT_SYMBOL_FOR_KVM(name)
#undef EXPORT_SYMBOL_FOR_MODULES
#define EXPORT_SYMBOL_FOR_MODULES(name, ...)
#undef EXPORT_PER_CPU_SYMBOL
#define EXPORT_PER_CPU_SYMBOL(name)
#undef EXPORT_PER_CPU_SYMBOL_GPL
#define EXPORT_PER_CPU_SYMBOL_GPL(name)
#undef EXPORT_STATIC_CALL_GPL
#define EXPORT_STATIC_CALL_GPL(name)
#undef EXPORT_STATIC_CALL_TRAMP_GPL
#define EXPORT_STATIC_CALL_TRAMP_GPL(name)
#undef NOKPROBE_SYMBOL
#define NOKPROBE_SYMBOL(name)
#undef __init
#define __init
#undef __initconst
#define __initconst
#undef __initdata
#define __initdata

/*
 * core.c's only early_initcall sets the PMU up. The module loader applies no relocation to the initial values of per-CPU
 * variables, so cpu_hw_events.pmu = &pmu would stay NULL: it is set here, where `pmu` can be seen.
 */
#undef early_initcall
#define early_initcall(fn)						\
	int lab_call_##fn(void);					\
	int lab_call_##fn(void)						\
	{								\
		int cpu;						\
									\
		for_each_possible_cpu(cpu)				\
			per_cpu(cpu_hw_events, cpu).pmu = &pmu;		\
		return fn();						\
	}
#undef subsys_initcall
#define subsys_initcall(fn)
#undef device_initcall
#define device_initcall(fn)
#undef arch_initcall
#define arch_initcall(fn)

#endif /* LAB_UNIT */
#endif
