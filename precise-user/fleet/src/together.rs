//! Requests to a bucket that go side by side.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::bucket::{FleetBucket, FleetError};
use precise_model::CompactSort as _;

/// The number of requests that are under way at the same time.
pub(crate) const TOGETHER: usize = 8;

/// Returns the results of `each` for all items, in their order. In a far bucket, where a request
/// waits for the network, some are made at the same time; after an error no further ones are.
pub(crate) fn together<T: Sync, R: Send>(
    bucket: &dyn FleetBucket,
    items: &[T],
    each: impl Fn(&T) -> Result<R, FleetError> + Sync,
) -> Result<Vec<R>, FleetError> {
    if bucket.is_near() || items.len() < 2 {
        return items.iter().map(each).collect();
    }
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let work = || {
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = each(item);
            if result.is_err() {
                next.store(items.len(), Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..TOGETHER.min(items.len()) {
            // Without a further thread, there are fewer requests at the same time.
            let _refused = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.compact_sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryBucket;

    #[test]
    fn results_are_in_the_order_of_items() {
        for far in [false, true] {
            let mut bucket = MemoryBucket::default();
            bucket.far = far;
            let items: Vec<u32> = (0..100).collect();
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let each = |item: &u32| {
                most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                std::thread::sleep(std::time::Duration::from_micros(u64::from(item % 7) * 100));
                now.fetch_sub(1, Relaxed);
                Ok(item * 2)
            };
            let found = together(&bucket, &items, each).unwrap();
            assert_eq!(found, items.iter().map(|item| item * 2).collect::<Vec<_>>());
            let most = most.into_inner();
            assert!(if far { (2..=TOGETHER).contains(&most) } else { most == 1 }, "{most}");
        }
    }

    #[test]
    fn an_error_ends_the_others() {
        let mut bucket = MemoryBucket::default();
        bucket.far = true;
        let made = AtomicUsize::new(0);
        let each = |item: &u32| {
            made.fetch_add(1, Relaxed);
            if *item == 3 { Err(FleetError::Busy { period: item.to_string() }) } else { Ok(*item) }
        };
        let items: Vec<u32> = (0..1000).collect();
        let error = together(&bucket, &items, each).unwrap_err();
        assert!(matches!(error, FleetError::Busy { .. }), "{error}");
        assert!(made.into_inner() <= 1000);
    }
}
