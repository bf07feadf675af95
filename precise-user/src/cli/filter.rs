//! The flags that say which samples to keep.

use clap::Args;
use precise::error::{Class, Failure};
use precise::filter::flags::Mode;
use precise::filter::{Flags, check_comm, parse};

#[derive(Debug, Args)]
pub struct FilterArguments {
    /// Keep samples that pass: 'latency > 100 && addr in 0x1000..0x2000 || comm == nginx'
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Keep samples of these cgroups and all below them: a path, a pattern ('/system.slice/web-*'), 'pod:NAMESPACE/POD',
    /// 'container:NAME' or 'unit:NAME'; also those made while it runs; may be given again
    #[arg(short = 'G', long, value_name = "CGROUP")]
    cgroup: Vec<String>,
    /// Keep samples of processes with these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    comm: Vec<String>,
    /// Keep samples whose data address lies here: 0x1000..0x2000; may be given again
    #[arg(long, value_name = "RANGE")]
    addr: Vec<String>,
    /// Keep samples whose instruction lies here: 0x1000..0x2000; may be given again
    #[arg(long, value_name = "RANGE")]
    code: Vec<String>,
    /// Keep samples of at least this latency, core cycles
    #[arg(long, value_name = "CYCLES")]
    min_latency: Option<u32>,
    /// Keep samples of at most this latency, core cycles
    #[arg(long, value_name = "CYCLES")]
    max_latency: Option<u32>,
    /// Keep samples taken in the kernel
    #[arg(short = 'K', long, conflicts_with = "all_user")]
    all_kernel: bool,
    /// Keep samples taken in user space
    #[arg(short = 'U', long)]
    all_user: bool,
}

impl FilterArguments {
    /// All of them but `-G`.
    pub fn flags(&self) -> Result<Flags, Failure> {
        let usage = |what: String| Failure::new(Class::Usage, what);
        let ranges = |flag: &str, texts: &[String]| {
            texts
                .iter()
                .map(|text| parse::range(text).map_err(|error| usage(format!("{flag} {text}: {error}"))))
                .collect::<Result<Vec<_>, _>>()
        };
        for comm in &self.comm {
            check_comm(comm).map_err(|error| usage(format!("--comm {comm}: {error}")))?;
        }
        let mut flags = Flags {
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
            ..Flags::default()
        };
        if let Some(text) = &self.filter {
            flags = flags.with_filter(text).map_err(|error| usage(error.to_string()))?;
        }
        Ok(flags)
    }

    /// What `-G` names.
    pub fn cgroups(&self) -> Vec<String> {
        self.cgroup.clone()
    }
}
