//! The flags that say which samples to keep, and their way to the program's slots.

use clap::Args;
use precise::error::{Class, Failure};
use precise::filter::flags::Mode;
use precise::filter::{Expr, Flags, check_comm, parse};
use precise::run::event_filter::open_cgroups;
use precise::symbols::cgroup::Hierarchy;
use precise::symbols::pattern::Pattern;

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
    /// A path (/system.slice/nginx.service), a pattern ('/system.slice/web-*'), 'pod:NAMESPACE/POD', 'container:NAME' or
    /// 'unit:NAME'. Patterns also match cgroups that are created during the run. May be given several times.
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
    /// All flags as one expression, and as text for the capture.
    pub fn expression(&self, cgroups: &WantedCgroups) -> Result<Option<Expr>, Failure> {
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
            cgroups: cgroups.names(),
            ..Flags::default()
        };
        if let Some(text) = &self.filter {
            flags = flags.with_filter(text).map_err(|error| usage(error.to_string()))?;
        }
        Ok(flags.expr())
    }

    /// What `-G` means.
    pub fn cgroups(&self) -> Result<WantedCgroups, Failure> {
        let mut wanted = WantedCgroups::default();
        if self.cgroup.is_empty() {
            return Ok(wanted);
        }
        let mut cgroups = open_cgroups()?;
        if cgroups.report().v2.is_none() {
            return Err(Failure::new(
                Class::Unsupported,
                "-G needs a cgroup v2 hierarchy, and this machine has only v1, which eBPF programs cannot see",
            )
            .advise("Mount one (mount -t cgroup2 none /sys/fs/cgroup/unified) and move the processes into its cgroups (docs/containers.md)."));
        }
        for text in &self.cgroup {
            let pattern = Pattern::parse(text)
                .map_err(|error| Failure::new(Class::Usage, format!("-G {text}: {error}")))?;
            if pattern.may_grow() {
                wanted.watch.push(pattern);
                continue;
            }
            let matching = cgroups.find(Hierarchy::V2, text);
            if matching.is_empty() {
                return Err(Failure::new(Class::Usage, format!("-G {text}: this cgroup does not exist in the v2 hierarchy"))
                    .advise("Write the path from the root of the hierarchy (/system.slice/nginx.service), or a pattern, which also matches cgroups that are created later ('/system.slice/nginx*')."));
            }
            wanted.paths.extend(matching.into_iter().map(|cgroup| cgroup.path.to_string()));
        }
        wanted.paths.sort();
        wanted.paths.dedup();
        // A cgroup below another that is kept as well adds nothing.
        let all = wanted.paths.clone();
        wanted.paths.retain(|path| {
            !all.iter().any(|other| {
                other != path && path.starts_with(other.trim_end_matches('/')) && {
                    other == "/" || path[other.len()..].starts_with('/')
                }
            })
        });
        Ok(wanted)
    }
}

/// What `-G` means: what is there, and what may come.
#[derive(Debug, Default)]
pub struct WantedCgroups {
    paths: Vec<String>,
    /// What is watched while the run goes on.
    pub watch: Vec<Pattern>,
}

impl WantedCgroups {
    fn names(&self) -> Vec<String> {
        let patterns = self.watch.iter().map(|pattern| pattern.text().to_owned());
        self.paths.iter().cloned().chain(patterns).collect()
    }
}
