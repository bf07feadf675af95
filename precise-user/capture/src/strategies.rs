//! Any captures, for tests.

use precise_model::testing::CaptureBuilder;
use precise_model::*;
use proptest::prelude::*;

fn name_strategy(names: usize) -> impl Strategy<Value = Name> {
    prop_oneof![
        (0..names as u32).prop_map(|id| Name::Known(NameId(id))),
        proptest::sample::select(Reason::ALL.to_vec()).prop_map(Name::Unknown),
    ]
}

/// The numbers of a column with a sign.
fn signed() -> impl Strategy<Value = u64> {
    0..=i64::MAX.cast_unsigned()
}

fn id_strategy(names: usize) -> impl Strategy<Value = NameId> {
    (0..names as u32).prop_map(NameId)
}

fn code_strategy(n: usize) -> impl Strategy<Value = CodeLocation> {
    let frame = (id_strategy(n), id_strategy(n), any::<u32>()).prop_map(|(function, source, line)| Frame {
        function,
        source,
        line,
    });
    let names = (name_strategy(n), id_strategy(n), name_strategy(n), name_strategy(n));
    let numbers = (any::<u64>(), signed(), signed(), any::<u32>());
    (any::<bool>(), numbers, names, proptest::collection::vec(frame, 0..3)).prop_map(
        |(kernel, (runtime_address, file_offset, function_offset, line), names, inlined_into)| {
            let (module, build_id, function, source) = names;
            CodeLocation {
                kernel,
                runtime_address,
                module,
                build_id,
                file_offset,
                function,
                function_offset,
                source,
                line,
                inlined_into,
            }
        },
    )
}

/// Captures of any content that a run could have written.
pub(super) fn capture_strategy() -> impl Strategy<Value = Capture> {
    (proptest::collection::vec(".{0,12}", 1..8), 1..4usize, 1..4usize).prop_flat_map(
        |(texts, epochs, events)| {
            let mut names = Names::default();
            for text in &texts {
                names.intern(text);
            }
            let n = names.len();
            let data = (any::<u64>(), name_strategy(n), signed(), name_strategy(n), signed()).prop_map(
                |(runtime_address, region, file_offset, variable, variable_offset)| DataLocation {
                    runtime_address,
                    region,
                    file_offset,
                    variable,
                    variable_offset,
                },
            );
            let ids = (
                0..epochs as u32,
                0..events as u16,
                any::<Option<u16>>(),
                any::<u64>(),
                any::<u32>(),
                any::<u32>(),
            );
            let names_of = (name_strategy(n), name_strategy(n), name_strategy(n));
            let places = (proptest::option::of(0..3u32), proptest::option::of(0..2u32));
            let class = (
                any::<u64>(),
                proptest::option::of(0..precise_common::latency::BUCKETS as u8),
                any::<bool>(),
            );
            let measures = (signed(), signed(), signed(), any::<u32>());
            let row = (ids, names_of, places, class, measures, any::<bool>());
            let rows = proptest::collection::vec(row, 0..40);
            let code = proptest::collection::vec(code_strategy(n), 3..=3);
            (code, proptest::collection::vec(data, 2..=2), rows, any::<u32>()).prop_map(
                move |(code, data, rows, start)| {
                    let mut capture = CaptureBuilder::new().build();
                    capture.meta.start_unix_ns = start.into();
                    capture.meta.epochs = vec![Epoch { start_ns: 5, end_ns: u64::MAX }; epochs];
                    let event = EventInfo { name: texts[0].clone(), ..EventInfo::default() };
                    capture.meta.events = vec![event; events];
                    capture.names = names.clone();
                    capture.rows = rows
                        .into_iter()
                        .map(|(ids, (cgroup, process, thread), (code_id, data), class, measures, kernel)| {
                            Row {
                                epoch: ids.0,
                                event: ids.1,
                                cpu: ids.2,
                                cgroup_id: ids.3,
                                cgroup,
                                pid: ids.4,
                                tid: ids.5,
                                process,
                                thread,
                                kernel: code_id.map_or(kernel, |id| code[id as usize].kernel),
                                code: code_id,
                                data,
                                stack: match class.0 % 5 {
                                    0 => Chain::Unknown(Reason::StackFull),
                                    1 => Chain::NONE,
                                    id => Chain::Known(id as u32 - 2),
                                },
                                data_src: class.0,
                                outcome: match class.0 % 3 {
                                    0 => None,
                                    1 => Some(Outcome::Op(class.0 >> 18)),
                                    _ => Some(Outcome::Fetch(class.0 >> 18)),
                                },
                                latency_bucket: class.1,
                                exact: class.2,
                                width: class.1.map(u16::from),
                                page_size: class.1.map(|bucket| 4096 << (bucket % 19)),
                                measures: Measures {
                                    count: measures.0,
                                    period_sum: measures.1,
                                    latency_sum: measures.2,
                                    latency_max: measures.3,
                                },
                            }
                        })
                        .collect();
                    (capture.code, capture.data) = (code, data);
                    capture.stacks = [&[][..], &[0], &[2, 1, 2]]
                        .into_iter()
                        .enumerate()
                        .map(|(at, callers)| Stack {
                            callers: callers.to_vec(),
                            elsewhere: at == 1,
                            cut: at == 2,
                            end: precise_model::ChainEnd::ALL.get(at).copied(),
                        })
                        .collect();
                    capture
                },
            )
        },
    )
}
