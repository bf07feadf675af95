//! Perf events: opening, controlling and reading them.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys::{self as sys, bindings as raw};
use precise_common::config::TIMER_LEAST_NS;
use precise_common::sample_bits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::SyscallError;

/// The encoding of an event: the fields of `perf_event_attr` that select what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Encoding {
    /// `perf_event_attr.type`: the number of the PMU.
    pub pmu: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// `perf_event_attr.config3`.
    pub config3: u64,
    /// Whether counting excludes user space.
    pub exclude_user: bool,
    /// Whether counting excludes the kernel.
    pub exclude_kernel: bool,
    /// Whether counting excludes the guests of virtual machines.
    pub exclude_guest: bool,
}

impl Encoding {
    /// Returns what triggers the samples of this event.
    pub fn trigger(&self) -> Trigger {
        let clocks = [raw::PERF_COUNT_SW_CPU_CLOCK, raw::PERF_COUNT_SW_TASK_CLOCK];
        match self.pmu {
            raw::PERF_TYPE_SOFTWARE if clocks.iter().any(|clock| u64::from(*clock) == self.config) => {
                Trigger::Timer
            }
            raw::PERF_TYPE_SOFTWARE | raw::PERF_TYPE_TRACEPOINT | raw::PERF_TYPE_BREAKPOINT => {
                Trigger::Kernel
            }
            _ => Trigger::Hardware,
        }
    }
}

/// What triggers the samples of an event.
///
/// The three kinds differ in the effect of a changed period, and in how a sample learns the number
/// of events that it represents (kernel/events/core.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A hardware counter overflows.
    Hardware,
    /// The kernel counts its own actions (`perf_swevent_event`), such as page faults and context
    /// switches.
    Kernel,
    /// A timer fires (`perf_swevent_hrtimer`): cpu-clock and task-clock.
    Timer,
}

impl Trigger {
    /// Returns the rate that the kernel really uses for an event opened with `rate`.
    ///
    /// The kernel converts a timer's frequency to a fixed period (`perf_swevent_init_hrtimer`
    /// clears `attr.freq`), and a timer's period is never shorter than [`TIMER_LEAST_NS`].
    pub fn in_force(self, rate: Rate) -> Rate {
        match (self, rate) {
            (Self::Timer, Rate::Frequency(hertz)) => {
                Rate::Period((1_000_000_000 / hertz.max(1)).max(TIMER_LEAST_NS))
            }
            (Self::Timer, Rate::Period(period)) => Rate::Period(period.max(TIMER_LEAST_NS)),
            (_, rate) => rate,
        }
    }
}

/// The numbers of registers on x86-64 (`enum perf_event_x86_regs`).
pub mod register {
    /// The frame pointer.
    pub const BP: u32 = 6;
    /// The stack pointer.
    pub const SP: u32 = 7;
    /// The instruction pointer.
    pub const IP: u32 = 8;
}

/// The registers that unwinding needs, as a mask of `attr.sample_regs_user`.
pub const UNWIND_REGISTERS: u64 = 1 << register::BP | 1 << register::SP | 1 << register::IP;

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// One sample every N events.
    Period(u64),
    /// About N samples per second per CPU. The kernel varies the period.
    Frequency(u64),
    /// No samples: the event only counts.
    Count,
}

/// Which CPU or thread an event covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything on one CPU.
    Cpu(u32),
    /// One thread, and the threads and processes that it starts.
    Task {
        /// Thread id.
        tid: i32,
        /// The number of the only CPU on which the thread is sampled; a ring requires it.
        cpu: u32,
        /// Whether counting starts only when the thread calls exec.
        on_exec: bool,
    },
}

impl Scope {
    /// Returns the only CPU that an event in this scope samples.
    pub const fn cpu(self) -> u32 {
        match self {
            Self::Cpu(cpu) | Self::Task { cpu, .. } => cpu,
        }
    }
}

/// Which optional fields each sample carries (`PERF_SAMPLE_*` bits). By default none: then the
/// kernel prepares nothing, which would cost as much as the eBPF program itself
/// (docs/journal/0029-no-field.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedFields {
    /// What each record in the ring must have: the instruction, the event's id and the CPU. The
    /// eBPF program reads the instruction from the registers.
    pub record: bool,
    /// Process and thread id, in the pid namespace of the process that opened the event, which the
    /// kernel searches for each sample. Without them, the eBPF program has the ids in the initial
    /// namespace.
    pub ids: bool,
    /// The data address.
    pub address: bool,
    /// The data source.
    pub data_source: bool,
    /// The latency.
    pub latency: bool,
    /// The physical data address. On Intel it costs a page-table walk in the NMI.
    pub phys_address: bool,
    /// The page size of the data address. It costs a page-table walk in the NMI.
    pub page_size: bool,
    /// The cgroup id of the perf_event controller. The eBPF program reads that of the unified
    /// hierarchy from the running task.
    pub cgroup: bool,
    /// The time. It costs a clock in the NMI, a third of what a page fault's sample adds to the
    /// fault.
    pub time: bool,
    /// The period: the number of events that the sample represents, if it can vary between samples.
    /// The eBPF program can always read it; a record in the ring carries it only on request.
    pub period: bool,
    /// Raw data that the driver adds: the registers of IBS.
    pub raw: bool,
    /// The call chain. The kernel unwinds it in the NMI.
    pub callchain: bool,
    /// Leaves the user's part out of the call chain.
    pub kernel_chain_only: bool,
    /// The number of bytes of the user stack, and the registers that unwind it; 0: neither.
    pub stack_copy: u32,
    /// Timestamps on the sideband's clock (`CLOCK_MONOTONIC`). All events of a group must use the
    /// same clock.
    pub monotonic: bool,
}

/// Everything that is needed to open one event.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// The event to count.
    pub encoding: Encoding,
    /// How often to sample it.
    pub rate: Rate,
    /// The level of `perf_event_attr.precise_ip`, 0 to 3.
    pub precise: u8,
    /// The optional fields of each sample.
    pub wanted: WantedFields,
}

/// An open event. It starts to count at [`Event::enable`], or at exec.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
    trigger: Trigger,
    /// The CPU or thread that the event covers.
    pub scope: Scope,
}

/// The counter values of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reading {
    /// The number of events counted.
    pub count: u64,
    /// The time for which the event was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// The time for which the event was counting, in nanoseconds.
    pub running_ns: u64,
    /// The number of samples that were lost because the ring was full.
    pub lost: u64,
}

const READ_TIMES: u64 = (raw::PERF_FORMAT_TOTAL_TIME_ENABLED | raw::PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;
const READ_LOST: u64 = raw::PERF_FORMAT_LOST as u64;

impl Event {
    /// Opens an event in the disabled state. With `leader`, the event joins that event's group.
    ///
    /// # Errors
    ///
    /// Returns the error of perf_event_open(2); [`super::explain`] explains it to the user.
    pub fn open(request: &OpenRequest, scope: Scope, leader: Option<&Self>) -> Result<Self, SyscallError> {
        let mut attr = attributes(request);
        let (pid, cpu) = match scope {
            Scope::Cpu(cpu) => (-1, cpu),
            Scope::Task { tid, cpu, on_exec } => {
                attr.set_inherit(1);
                attr.set_enable_on_exec(on_exec.into());
                (tid, cpu)
            }
        };
        // PERF_FORMAT_LOST is new in 6.0. Older kernels refuse unknown read_format bits with
        // EINVAL.
        attr.read_format = READ_TIMES | READ_LOST;
        let group = leader.map_or(-1, |leader| leader.fd.as_raw_fd());
        let fd = match open_raw(&mut attr, pid, cpu, group) {
            Err(error) if error.errno() == libc::EINVAL => {
                attr.read_format = READ_TIMES;
                open_raw(&mut attr, pid, cpu, group)?
            }
            other => other?,
        };
        Ok(Self { fd, trigger: request.encoding.trigger(), scope })
    }

    /// Starts to count.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2).
    pub fn enable(&self) -> Result<(), SyscallError> {
        // SAFETY: an open event; the argument is a flag word.
        let done = unsafe { sys::ioctls::ENABLE(self.fd.as_raw_fd(), 0) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_ENABLE)")) } else { Ok(()) }
    }

    /// Stops counting. The counter can still be read.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2).
    pub fn disable(&self) -> Result<(), SyscallError> {
        // SAFETY: as in `enable`.
        let done = unsafe { sys::ioctls::DISABLE(self.fd.as_raw_fd(), 0) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_DISABLE)")) } else { Ok(()) }
    }

    /// Changes the sample rate of an enabled event.
    ///
    /// A new period takes effect at once: the events counted towards the next sample are discarded.
    /// Tasks that have already inherited the event keep the old rate; tasks that inherit it later
    /// get the new one.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2): `EINVAL` if the PMU does not accept this period.
    pub fn set_rate(&self, rate: Rate) -> Result<(), SyscallError> {
        // The ioctl interprets the value as a period or as a frequency, depending on how the event
        // was opened. So a timer's frequency must be converted to a period first.
        let (Rate::Period(value) | Rate::Frequency(value)) = self.trigger.in_force(rate) else {
            return Ok(());
        };
        if self.trigger != Trigger::Kernel {
            return self.set_period(value);
        }
        // `__perf_event_period` starts a new interval with the old length, and turns the next event
        // into a sample that claims a whole interval (from period 1 on, even two intervals).
        // `perf_swevent_add`, which enabling the event calls, starts an interval with the new
        // length.
        self.disable()?;
        let set = self.set_period(value);
        self.enable()?;
        set
    }

    fn set_period(&self, mut value: u64) -> Result<(), SyscallError> {
        // SAFETY: the event is open, and the number at this address outlives the call.
        let done = unsafe { sys::ioctls::PERIOD(self.fd.as_raw_fd(), (&raw mut value) as u64) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_PERIOD)")) } else { Ok(()) }
    }

    /// Sends the records of this event to the ring of another event on the same CPU.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2): `EINVAL` if the events differ in CPU or clock.
    pub fn redirect(&self, owner: &Self) -> Result<(), SyscallError> {
        // SAFETY: two open events.
        let done = unsafe { sys::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), owner.fd.as_raw_fd()) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_SET_OUTPUT)")) } else { Ok(()) }
    }

    /// Returns whether the task of this event has ended, with all tasks that inherited the event.
    /// The event must have a ring, its own or that of another event: an event without one cannot be
    /// told from one whose task has ended (`perf_poll()`, kernel/events/core.c).
    pub fn task_has_ended(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut event = [PollFd::new(&self.fd, PollFlags::empty())];
        poll(&mut event, Some(&at_once)) == Ok(1) && event[0].revents().contains(PollFlags::HUP)
    }

    /// Attaches a program, which then runs for every sample until the event is closed.
    ///
    /// A BPF link would do the same at the price of a second descriptor for each event, of which
    /// there is one for every thread on every CPU.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2): `EEXIST` if the event already has a program, and `EPROTO` if
    /// the program reads stacks but the event has no call chain.
    pub fn attach(&self, program: BorrowedFd<'_>) -> Result<(), SyscallError> {
        // SAFETY: the event and the program are open.
        let done = unsafe { sys::ioctls::SET_BPF(self.fd.as_raw_fd(), program.as_raw_fd() as u32) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_SET_BPF)")) } else { Ok(()) }
    }

    /// Returns the id by which records name this event and the events that tasks inherit from it.
    ///
    /// # Errors
    ///
    /// Returns the error of ioctl(2).
    pub fn id(&self) -> Result<u64, SyscallError> {
        let mut id = 0u64;
        // SAFETY: the event is open, and the number at this address outlives the call.
        let done = unsafe { sys::ioctls::ID(self.fd.as_raw_fd(), &raw mut id) };
        if done < 0 { Err(SyscallError::last("ioctl(PERF_EVENT_IOC_ID)")) } else { Ok(id) }
    }

    /// Reads the counter, including inherited ones.
    ///
    /// Reading does not disturb sampling: with `wakeup_events = 1` it drains no PEBS buffer (kernel
    /// facts: intel_pmu_read_event only drains auto-reload events).
    ///
    /// # Errors
    ///
    /// Returns the error of read(2).
    pub fn read(&self) -> Result<Reading, SyscallError> {
        let mut words = [0u64; 4];
        // SAFETY: the call writes at most the 32 bytes of `words`.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        if got < 0 {
            return Err(SyscallError::last("read"));
        }
        let [count, enabled_ns, running_ns, lost] = words;
        Ok(Reading { count, enabled_ns, running_ns, lost })
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Event {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Returns the `perf_event_attr` of a request.
pub fn attributes(request: &OpenRequest) -> raw::perf_event_attr {
    let OpenRequest { encoding, rate, precise, wanted } = request;
    let mut attr = raw::perf_event_attr {
        size: size_of::<raw::perf_event_attr>() as u32,
        type_: encoding.pmu,
        config: encoding.config,
        config3: encoding.config3,
        ..Default::default()
    };
    attr.__bindgen_anon_3.config1 = encoding.config1;
    attr.__bindgen_anon_4.config2 = encoding.config2;
    attr.set_disabled(1);
    attr.set_exclude_user(encoding.exclude_user.into());
    attr.set_exclude_kernel(encoding.exclude_kernel.into());
    attr.set_exclude_guest(encoding.exclude_guest.into());
    if wanted.monotonic {
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
    }
    match *rate {
        Rate::Count => return attr,
        Rate::Period(period) => attr.__bindgen_anon_1.sample_period = period,
        Rate::Frequency(frequency) => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = frequency;
        }
    }
    attr.set_precise_ip((*precise).into());
    attr.set_exclude_callchain_user(wanted.kernel_chain_only.into());
    attr.set_sample_id_all(1);
    // This setting makes every PEBS record pass through the program. Without it, the driver writes
    // all but the last record of a batch directly to the ring, bypassing the program
    // (arch/x86/events/intel/core.c, intel_pmu_hw_config).
    attr.set_watermark(0);
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.sample_type = sample_type(request);
    attr.sample_regs_user = registers(request);
    attr.sample_stack_user = wanted.stack_copy;
    attr
}

/// Returns `attr.sample_type` of a sampling event: the fields of its records.
pub(super) fn sample_type(request: &OpenRequest) -> u64 {
    let wanted = &request.wanted;
    let WantedFields { address, data_source, latency, phys_address, page_size, cgroup, .. } = *wanted;
    // With PERF_SAMPLE_PERIOD and without a frequency, `perf_swevent_event` takes a sample at every
    // event, ignoring the period (kernel/events/core.c). The reader of such records knows the fixed
    // period anyway.
    let fixed = matches!(request.rate, Rate::Period(_));
    let period = wanted.period && !(fixed && request.encoding.trigger() == Trigger::Kernel);
    // Each field that the program reads must be requested, or the field is garbage
    // (kernel/events/core.c, perf_prepare_sample).
    let mut bits = 0;
    for (wants, bit) in [
        (wanted.record, sample_bits::IP | sample_bits::ID | sample_bits::CPU),
        (wanted.ids, sample_bits::TID),
        (wanted.time, sample_bits::TIME),
        (address, sample_bits::ADDR),
        (data_source, sample_bits::DATA_SRC),
        (latency, sample_bits::WEIGHT_STRUCT),
        (phys_address, sample_bits::PHYS_ADDR),
        (page_size, sample_bits::DATA_PAGE_SIZE),
        (cgroup, sample_bits::CGROUP),
        (period, sample_bits::PERIOD),
        (wanted.raw, sample_bits::RAW),
        (wanted.callchain, sample_bits::CALLCHAIN),
        (wanted.stack_copy > 0, sample_bits::REGS_USER | sample_bits::STACK_USER),
    ] {
        if wants {
            bits |= bit;
        }
    }
    bits
}

/// Returns `attr.sample_regs_user` of a sampling event: what its records have of the registers.
pub(super) fn registers(request: &OpenRequest) -> u64 {
    if request.wanted.stack_copy > 0 { UNWIND_REGISTERS } else { 0 }
}

pub(super) fn open_raw(
    attr: &mut raw::perf_event_attr,
    pid: i32,
    cpu: u32,
    group: RawFd,
) -> Result<OwnedFd, SyscallError> {
    // SAFETY: the attr is fully initialised, and its `size` field is correct.
    let fd = unsafe { sys::perf_event_open(attr, pid, cpu as i32, group, raw::PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(SyscallError::last("perf_event_open"));
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// This module does not check whether the kernel knows `PERF_SAMPLE_WEIGHT_STRUCT` (5.12 and
/// later): [`super::explain`] explains the `EINVAL` of an older kernel.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_has_a_period_whatever_it_was_opened_with() {
        let software = |config| Encoding { pmu: 1, config, ..Encoding::default() }.trigger();
        assert_eq!(
            (software(0), software(1), software(2)),
            (Trigger::Timer, Trigger::Timer, Trigger::Kernel)
        );
        assert_eq!(Encoding { pmu: 2, ..Encoding::default() }.trigger(), Trigger::Kernel);
        for pmu in [0, 3, 4, 9] {
            assert_eq!(Encoding { pmu, ..Encoding::default() }.trigger(), Trigger::Hardware, "{pmu}");
        }

        let timer = |rate| Trigger::Timer.in_force(rate);
        assert_eq!(timer(Rate::Frequency(4999)), Rate::Period(200_040));
        assert_eq!(timer(Rate::Frequency(54)), Rate::Period(18_518_518));
        assert_eq!(timer(Rate::Frequency(u64::MAX)), Rate::Period(TIMER_LEAST_NS));
        assert_eq!(timer(Rate::Period(54)), Rate::Period(TIMER_LEAST_NS));
        assert_eq!(timer(Rate::Period(1_000_003)), Rate::Period(1_000_003));
        for other in [Trigger::Hardware, Trigger::Kernel] {
            for rate in [Rate::Frequency(4999), Rate::Period(1), Rate::Count] {
                assert_eq!(other.in_force(rate), rate);
            }
        }
    }

    #[test]
    fn no_record_of_an_event_with_a_fixed_period_makes_the_kernel_sample_each_event() {
        let asks = |pmu, config, rate| {
            let encoding = Encoding { pmu, config, ..Encoding::default() };
            let wanted = WantedFields { period: true, ..WantedFields::default() };
            let attr = attributes(&OpenRequest { encoding, rate, precise: 0, wanted });
            attr.sample_type & u64::from(raw::PERF_SAMPLE_PERIOD) != 0
        };
        let (fixed, varying) = (Rate::Period(1000), Rate::Frequency(1000));
        // Page faults, context switches, a tracepoint; cpu-clock, cycles, IBS.
        for (pmu, config) in [(1, 2), (1, 3), (2, 300)] {
            assert!(!asks(pmu, config, fixed) && asks(pmu, config, varying), "{pmu}, {config}");
        }
        for (pmu, config) in [(1, 0), (0, 0), (9, 0)] {
            assert!(asks(pmu, config, fixed) && asks(pmu, config, varying), "{pmu}, {config}");
        }
        let plain = OpenRequest {
            encoding: Encoding::default(),
            rate: fixed,
            precise: 0,
            wanted: WantedFields::default(),
        };
        assert_eq!(attributes(&plain).sample_type & u64::from(raw::PERF_SAMPLE_PERIOD), 0);
    }

    #[test]
    fn every_sampling_event_makes_the_kernel_hand_over_each_record() {
        let request = OpenRequest {
            encoding: Encoding::default(),
            rate: Rate::Period(1009),
            precise: 2,
            wanted: WantedFields {
                address: true,
                data_source: true,
                latency: true,
                ..WantedFields::default()
            },
        };
        let attr = attributes(&request);
        assert_eq!(attr.watermark(), 0);
        // SAFETY: the union's member that `attributes` wrote.
        assert_eq!(unsafe { attr.__bindgen_anon_2.wakeup_events }, 1);
        assert_eq!(attr.precise_ip(), 2);
        let all = sample_bits::ADDR | sample_bits::DATA_SRC | sample_bits::WEIGHT_STRUCT;
        assert_eq!(attr.sample_type, all);
    }
}
