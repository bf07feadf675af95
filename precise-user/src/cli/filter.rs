//! The flags that say which samples to keep, and their way to the program's slots.

use std::{cell::RefCell, path::Path};

use clap::Args;
use precise::{
    error::{Class, Failure},
    filter::{
        self, CgroupMatch, Compiled, EventFields, Expr, Fields, Flags, Resolver, check_comm, flags::Mode,
        parse,
    },
    machine::MachineInfo,
    pmu::{EventRequest, Exactness},
    symbols::cgroup::{Cgroups, Hierarchy},
};

#[derive(Debug, Args)]
pub struct FilterArguments {
    /// Keep samples that pass: 'latency > 100 && addr in 0x1000..0x2000 || comm == nginx'
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Keep samples of these cgroups and all below them: a path or a pattern; may be given again
    #[arg(short = 'G', long, value_name = "PATH")]
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

/// The cgroups of this machine, for the names in filters.
struct Cgroup(RefCell<Cgroups>);

impl Resolver for Cgroup {
    fn cgroup(&self, path: &str) -> Result<CgroupMatch, String> {
        let mut cgroups = self.0.try_borrow_mut().map_err(|error| error.to_string())?;
        if cgroups.report().v2.is_none() {
            return Err("this machine has no cgroup v2 hierarchy mounted".to_owned());
        }
        match cgroups.find(Hierarchy::V2, path).as_slice() {
            [one] => Ok(CgroupMatch::Subtree { id: one.id, level: one.level }),
            [] => Err("there is no such cgroup in the v2 hierarchy".to_owned()),
            several => Err(format!("{} cgroups match; name one, or use -G", several.len())),
        }
    }
}

impl FilterArguments {
    /// All flags as one expression, and as text for the capture.
    pub fn expression(&self) -> Result<Option<Expr>, Failure> {
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
            cgroups: self.cgroups()?,
            ..Flags::default()
        };
        if let Some(text) = &self.filter {
            flags = flags.with_filter(text).map_err(|error| usage(error.to_string()))?;
        }
        Ok(flags.expr())
    }

    /// The cgroups that the patterns of `-G` stand for now.
    fn cgroups(&self) -> Result<Vec<String>, Failure> {
        if self.cgroup.is_empty() {
            return Ok(Vec::new());
        }
        let mut cgroups = open()?;
        let mut found = Vec::new();
        for pattern in &self.cgroup {
            let matching = cgroups.find(Hierarchy::V2, pattern);
            if matching.is_empty() {
                return Err(Failure::new(Class::Usage, format!("-G {pattern}: no cgroup of the v2 hierarchy matches"))
                    .advise("A path is from the root of the hierarchy: /system.slice/nginx.service; * matches one step."));
            }
            found.extend(matching.into_iter().map(|cgroup| cgroup.path.to_string()));
        }
        found.sort();
        found.dedup();
        // A cgroup below another that is kept as well adds nothing.
        let all = found.clone();
        found.retain(|path| {
            !all.iter().any(|other| {
                other != path && path.starts_with(other.trim_end_matches('/')) && {
                    other == "/" || path[other.len()..].starts_with('/')
                }
            })
        });
        Ok(found)
    }
}

/// Compiles an expression for one event, whose own filter is added.
pub fn compile(
    expression: Option<&Expr>,
    request: &EventRequest,
    machine: &MachineInfo,
) -> Result<Compiled, Failure> {
    let own = request.filter.as_deref().map(parse::parse).transpose().map_err(|error| {
        Failure::new(
            Class::Failed,
            format!("the filter that {} itself needs is wrong: {error}", request.name),
        )
    })?;
    let Some(whole) = Expr::all(own.into_iter().chain(expression.cloned())) else {
        return Ok(Compiled::default());
    };
    let usage = |error: &dyn std::fmt::Display| Failure::new(Class::Usage, error.to_string());
    let fields = Fields {
        address: request.fields.address,
        latency: request.fields.latency,
        data_src: request.fields.data_source,
        // What the kernel derives from the address.
        phys_address: request.fields.address,
        page_size: request.fields.address,
    };
    filter::check(&whole, &EventFields { name: &request.name, fields }, &[])
        .map_err(|error| usage(&error))?;
    // IBS fills only the legacy bits of the data source before 6.2.
    let legacy_levels =
        request.exactness == Exactness::Ibs && !machine.kernel.is_some_and(|version| version.at_least(6, 2));
    let resolver = Cgroup(RefCell::new(open()?));
    filter::compile(&whole, filter::Options { legacy_levels }, &resolver).map_err(|error| usage(&error))
}

fn open() -> Result<Cgroups, Failure> {
    Cgroups::open(Path::new("/"))
        .map_err(|error| Failure::new(Class::Failed, format!("the cgroups cannot be found: {error}")))
}
