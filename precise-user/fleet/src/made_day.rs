//! The tables of a day of a large fleet that never was, without its captures. Not part of the
//! public interface.

use std::sync::Arc;

use crate::add_up::Sums;
use crate::bucket::{FleetBucket, FleetError};
use crate::encode::{self, EncodedPart};
use crate::fold::{EventKey, Fold, Full, NodeKey};
use crate::functions::SymbolNames;
use crate::hash::{Random, node_group};
use crate::hour::FleetDay;
use crate::keys::{LatencyKey, RowKey};
use crate::making;
use crate::manifest::{FleetManifest, FleetPeriod, ManifestPart};
use crate::tables::{FleetTable, TIERS};

/// The size of a day.
#[derive(Clone, Copy, Debug)]
pub struct MadeDay {
    /// Decides everything.
    pub seed: u64,
    /// The day.
    pub day: FleetDay,
    /// Number of nodes, each of which runs all services.
    pub nodes: u32,
    /// Number of services.
    pub services: u32,
    /// Number of functions of a service.
    pub functions: u32,
    /// Number of rows of each node and service.
    pub rows: u32,
}

impl MadeDay {
    /// Writes the tables, twenty services to a part. Returns the number of rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the bucket refuses.
    pub fn write(&self, bucket: &Arc<dyn FleetBucket>) -> Result<u64, FleetError> {
        let mut parts: Vec<ManifestPart> = Vec::new();
        let mut total = 0;
        let hour = self.day.first();
        for (number, first) in (0..self.services).step_by(20).enumerate() {
            let wrong =
                |Full(what): Full| FleetError::Encode { name: "made".to_owned(), what: what.to_owned() };
            let mut fold = self.fold(first, (first + 20).min(self.services)).map_err(wrong)?;
            fold.finish();
            let mut put = |part: Option<EncodedPart>, tier: Option<u8>| -> Result<(), FleetError> {
                let Some(part) = part else { return Ok(()) };
                let name = part.table.of_day(self.day, tier, &number.to_string());
                parts.push(making::write(bucket, name, EncodedPart { tier, ..part })?);
                Ok(())
            };
            let symbols: Vec<_> = fold.functions.named().collect();
            put(encode::symbols(&symbols)?, None)?;
            put(encode::latencies(FleetTable::DayLatency, &fold, hour)?, None)?;
            if number == 0 {
                put(encode::ledger(FleetTable::DayLedger, &fold, hour)?, None)?;
                for hour in self.day.hours() {
                    let Some(part) = encode::ledger(FleetTable::Ledger, &fold, hour)? else { continue };
                    let name = part.table.of_hour(hour, "made");
                    let part = making::write(bucket, name, part)?;
                    let manifest = FleetManifest { parts: vec![part], ..FleetManifest::default() };
                    manifest.write(bucket, FleetPeriod::Hour(hour))?;
                }
            }
            put(encode::grouped(&fold, &fold.rows, hour)?, None)?;
            let mut rows = std::mem::take(&mut fold.rows);
            total += rows.len() as u64;
            for tier in 0..TIERS {
                if tier > 0 {
                    rows = encode::thin(&fold, &rows, hour, tier);
                }
                put(encode::rows(FleetTable::Day, &fold, &rows, hour)?, Some(tier))?;
            }
        }
        let of = self.day.hours().map(|hour| FleetPeriod::Hour(hour).name(0)).collect();
        FleetManifest { parts, of, ..FleetManifest::default() }.write(bucket, FleetPeriod::Day(self.day))?;
        Ok(total)
    }

    fn fold(&self, first: u32, end: u32) -> Result<Fold, Full> {
        let mut fold = Fold::new();
        let key = EventKey { event: "loads".into(), unit: "loads".into(), kind: "intel".into() };
        let event = fold.event(key)?;
        let level = |fold: &mut Fold, name: &str| Fold::text(&mut fold.levels, name);
        let levels =
            [level(&mut fold, "L1 hit")?, level(&mut fold, "Local RAM hit")?, level(&mut fold, "L3 hit")?];
        let cluster = Fold::text(&mut fold.clusters, "prod")?;
        for node in 0..self.nodes {
            let name = format!("node-{node:05}");
            let group = node_group("prod", &name);
            let node = fold.node(NodeKey { node: name, cluster: "prod".to_owned() })?;
            let mut random = Random(self.seed ^ u64::from(node) << 32 ^ u64::from(first));
            for service in first..end {
                let number = Fold::text(&mut fold.services, &format!("shop/service-{service:04}"))?;
                for _ in 0..self.rows {
                    // The first functions have more rows.
                    let below =
                        |random: &mut Random, most: u32| (random.next() % u64::from(most.max(1))) as u32;
                    let most = below(&mut random, self.functions) + 1;
                    let function = below(&mut random, most);
                    let name = format!("service_{service}::function_{function}");
                    let module = format!("/usr/bin/service-{service}");
                    let names = SymbolNames { name: &name, module: &module, ..SymbolNames::default() };
                    let function = fold.symbol(names)?;
                    let level = levels.get(random.next() as usize % 3).copied().unwrap_or(0);
                    let key = RowKey { service: number, event, function, level, node, timed: true };
                    let count = 1 + random.next() % 40;
                    let latency = 20 + random.next() % 300;
                    let (latency_sum, latency_max) = (count * latency, latency as u32);
                    fold.rows
                        .push((key.pack(), Sums { count, weight: count * 1000, latency_sum, latency_max }));
                    let bucket = precise_common::latency::bucket(latency as u32) as u8;
                    let key = LatencyKey { service: number, event, function, level, cluster, group, bucket };
                    fold.latencies.push((key.pack(), [count, count * 1000]));
                }
            }
            if first == 0 {
                let sums = crate::ledger::LedgerSums { captures: 24, precise: true, ..Default::default() };
                fold.ledger.insert((node, event), sums);
            }
        }
        Ok(fold)
    }
}
