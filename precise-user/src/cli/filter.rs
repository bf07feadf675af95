//! The flags that say which samples to keep, and their way to the program's slots.

use clap::Args;
use precise::error::{Class, Failure};
use precise::filter::flags::Mode;
use precise::filter::{Expr, Flags, check_comm, parse};
use precise::run::event_filter::open_cgroups;
use precise::symbols::cgroup::Hierarchy;
use precise::symbols::pattern::Pattern;

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
                "-G needs a cgroup v2 hierarchy, and this machine has only v1: the kernel does not tell the program of those",
            )
            .advise("Mount one beside them: mount -t cgroup2 none /sys/fs/cgroup/unified; processes must be in its cgroups (docs/containers.md)."));
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
                return Err(Failure::new(Class::Usage, format!("-G {text}: there is no such cgroup in the v2 hierarchy"))
                    .advise("A path is from the root of the hierarchy: /system.slice/nginx.service. A pattern also waits for what is made later: '/system.slice/nginx*'."));
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
