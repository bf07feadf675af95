//! The flags that choose which samples to keep.

use clap::Args;
use precise::error::{ExitClass, Failure};
use precise::filter::flags::Mode;
use precise::filter::{FilterFlags, check_comm, parse};

use super::selection::FILTER;

#[derive(Debug, Args)]
pub struct FilterArguments {
    /// Keep only samples that match, as in 'latency > 100 && comm == nginx'
    ///
    /// The filter runs in the kernel. Terms, operators and sets: docs/filters.md.
    #[arg(long, value_name = "EXPRESSION", help_heading = FILTER)]
    filter: Option<String>,
    /// Keep only samples of these cgroups and their descendants
    ///
    /// A path (/system.slice/nginx.service), a pattern ('/system.slice/web-*'),
    /// 'pod:NAMESPACE/POD', 'container:NAME' or 'unit:NAME'. Patterns also match cgroups that are
    /// created during the run. May be given several times.
    #[arg(short = 'G', long, value_name = "CGROUP", help_heading = FILTER)]
    cgroup: Vec<String>,
    /// Keep only samples of processes with these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = FILTER, hide_short_help = true)]
    comm: Vec<String>,
    /// Keep only samples with a data address in this range: 0x1000..0x2000
    ///
    /// The end is not part of the range. May be given several times.
    #[arg(long, value_name = "RANGE", help_heading = FILTER, hide_short_help = true)]
    addr: Vec<String>,
    /// Keep only samples with an instruction address in this range: 0x1000..0x2000
    ///
    /// The end is not part of the range. May be given several times.
    #[arg(long, value_name = "RANGE", help_heading = FILTER, hide_short_help = true)]
    code: Vec<String>,
    /// Keep only samples with a latency of at least N core cycles
    #[arg(long, value_name = "N", help_heading = FILTER)]
    min_latency: Option<u32>,
    /// Keep only samples with a latency of at most N core cycles
    #[arg(long, value_name = "N", help_heading = FILTER, hide_short_help = true)]
    max_latency: Option<u32>,
    /// Keep only samples taken in the kernel
    #[arg(short = 'K', long, conflicts_with = "all_user", help_heading = FILTER, hide_short_help = true)]
    all_kernel: bool,
    /// Keep only samples taken in user space
    #[arg(short = 'U', long, help_heading = FILTER, hide_short_help = true)]
    all_user: bool,
}

impl FilterArguments {
    /// Returns the values of all filter flags except `-G`.
    pub fn flags(&self) -> Result<FilterFlags, Failure> {
        let usage = |what: String| Failure::new(ExitClass::Usage, what);
        let ranges = |flag: &str, texts: &[String]| {
            texts
                .iter()
                .map(|text| parse::range(text).map_err(|error| usage(format!("{flag} {text}: {error}"))))
                .collect::<Result<Vec<_>, _>>()
        };
        for comm in &self.comm {
            check_comm(comm).map_err(|error| usage(format!("--comm {comm}: {error}")))?;
        }
        let mut flags = FilterFlags {
            mode: match (self.all_kernel, self.all_user) {
                (true, _) => Some(Mode::Kernel),
                (_, true) => Some(Mode::User),
                _ => None,
            },
            latency_min: self.min_latency,
            latency_max: self.max_latency,
            data_addresses: ranges("--addr", &self.addr)?,
            code_addresses: ranges("--code", &self.code)?,
            comms: self.comm.clone(),
            ..FilterFlags::default()
        };
        if let Some(text) = &self.filter {
            flags = flags.with_filter(text).map_err(|error| usage(error.to_string()))?;
        }
        Ok(flags)
    }

    /// Returns the cgroups that `-G` names.
    pub fn cgroups(&self) -> Vec<String> {
        self.cgroup.clone()
    }
}
