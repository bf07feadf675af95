use std::sync::mpsc;

use precise_model::testing::CaptureBuilder;

use super::super::PushTable;
use super::*;

/// A backend with prepared answers. It makes two requests of each interval, with a third and two
/// thirds of its samples.
struct Scripted {
    answers: VecDeque<PushAnswer>,
    /// What each attempt sent.
    sent: Arc<Mutex<Vec<(String, u64)>>>,
    /// Waits for a word before the first request.
    go: Option<mpsc::Receiver<()>>,
}

impl PushBackend for Scripted {
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage> {
        if let Some(go) = self.go.take() {
            let _gone = go.recv();
        }
        let samples = capture.rows.iter().map(|row| row.measures.count).sum::<u64>();
        let part = |query: &str, samples| PushMessage {
            query: format!("{} {query}", capture.meta.target),
            body: bytes::Bytes::new(),
            profiles: 3,
            samples,
        };
        vec![part("a", samples / 3), part("b", samples - samples / 3)]
    }

    fn send(&mut self, message: &PushMessage) -> PushAnswer {
        self.sent.lock().unwrap().push((message.query.clone(), message.samples));
        self.answers.pop_front().unwrap_or(TAKEN)
    }
}

const TAKEN: PushAnswer = PushAnswer::Taken { refused: 0, said: String::new() };

fn later(after: Option<Duration>) -> PushAnswer {
    PushAnswer::Later { after, why: "it is busy".into() }
}

fn interval(name: &str, samples: u64, bytes: usize) -> Arc<PushInterval> {
    let mut builder = CaptureBuilder::new();
    builder.meta().target = name.into();
    builder.cell().samples(samples);
    Arc::new(PushInterval { capture: builder.build(), samples, bytes })
}

/// Sends intervals of these names, samples and bytes, with at most 100 bytes that wait. The first
/// one is taken from the queue when all others wait.
fn sent(answers: Vec<PushAnswer>, intervals: &[(&str, u64, usize)]) -> (Vec<(String, u64)>, PushTable) {
    let (tell, go) = mpsc::channel();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let backend = Scripted { answers: answers.into(), sent: sent.clone(), go: Some(go) };
    let place = PushPlace { name: "test".into(), backend: Box::new(backend) };
    let counts = Arc::new(PushCounts::new("test".into()));
    let sender = PushSender::patient(place, counts.clone(), 100, Duration::from_millis(1)).unwrap();
    for (at, (name, samples, bytes)) in intervals.iter().enumerate() {
        sender.add(interval(name, *samples, *bytes));
        // The thread takes the first one, and waits for a word.
        while at == 0 && counts.table().bytes > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let all: u64 = intervals.iter().map(|(_, samples, _)| samples).sum();
    assert_eq!(accounted(&counts.table()), all);
    tell.send(()).unwrap();
    while counts.table().waiting > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    sender.close();
    assert_eq!(sender.end(Instant::now()), 0);
    let (sent, table) = (std::mem::take(&mut *sent.lock().unwrap()), counts.table());
    assert_eq!(accounted(&table), all);
    (sent, table)
}

/// Returns the samples with a fate, and those that wait for one.
fn accounted(table: &PushTable) -> u64 {
    table.samples.iter().map(|(_, count)| count).sum::<u64>() + table.waiting
}

fn of(list: &[(&str, u64)], name: &str) -> u64 {
    list.iter().find(|(found, _)| *found == name).map_or(0, |(_, count)| *count)
}

#[test]
fn a_place_that_is_busy_gets_the_request_later() {
    let begin = Instant::now();
    let pause = Duration::from_millis(30);
    let (sent, table) = sent(vec![later(None), later(Some(pause)), TAKEN], &[("i", 30, 10)]);
    let names: Vec<_> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["i a", "i a", "i a", "i b"]);
    assert!(begin.elapsed() >= pause);
    assert_eq!((of(&table.samples, "sent"), of(&table.requests, "sent"), table.retries), (30, 2, 2));
    assert!(table.last_ns > 0);
}

#[test]
fn a_dead_place_costs_an_interval_the_attempts_of_one_request() {
    let answers = vec![later(None); ATTEMPTS as usize];
    let (sent, table) = sent(answers, &[("i", 30, 10), ("j", 60, 10)]);
    // The second request of the first interval is not tried.
    assert_eq!(sent.len(), ATTEMPTS as usize + 2);
    assert_eq!((of(&table.requests, "failed"), of(&table.requests, "sent")), (2, 2));
    assert_eq!((of(&table.samples, "failed"), of(&table.samples, "sent")), (30, 60));
}

#[test]
fn what_is_refused_is_not_tried_again() {
    let refused = |refused| PushAnswer::Taken { refused, said: "too large".into() };
    let never = PushAnswer::Refused { why: "status 400".into() };
    let answers = vec![refused(1), never, refused(3), refused(u64::MAX)];
    let (sent, table) = sent(answers, &[("i", 30, 10), ("j", 60, 10)]);
    assert_eq!(sent.len(), 4);
    let samples = ["partial", "refused", "sent"].map(|how| of(&table.samples, how));
    assert_eq!(samples, [10, 80, 0]);
    // One of three; then three each.
    assert_eq!((table.refused, table.retries), (10, 0));
}

#[test]
fn the_newest_are_sent_first_and_displace_the_oldest() {
    let intervals = [("i", 3, 10), ("j", 6, 60), ("k", 9, 60), ("l", 12, 40), ("m", 15, 60), ("n", 300, 500)];
    let (first, table) = sent(Vec::new(), &intervals);
    let names: Vec<_> = first.iter().map(|(name, _)| name.as_str()).collect();
    // One interval may always wait, however large it is.
    assert_eq!(names, ["i a", "i b", "n a", "n b"]);
    assert_eq!((of(&table.samples, "displaced"), of(&table.samples, "sent")), (42, 303));
    assert_eq!(table.requests.iter().map(|(_, count)| count).sum::<u64>(), 4);
    let (sent, table) = sent(Vec::new(), &intervals[..4]);
    let names: Vec<_> = sent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["i a", "i b", "l a", "l b", "k a", "k b"]);
    assert_eq!(of(&table.samples, "displaced"), 6);
}

#[test]
fn the_end_does_not_wait_for_a_place_that_is_down() {
    let backend = Scripted {
        answers: vec![later(Some(Duration::from_secs(3600))); 9].into(),
        sent: Arc::default(),
        go: None,
    };
    let place = PushPlace { name: "test".into(), backend: Box::new(backend) };
    let counts = Arc::new(PushCounts::new("test".into()));
    let sender = PushSender::start(place, counts.clone(), 100).unwrap();
    sender.add(interval("i", 30, 10));
    let begin = Instant::now();
    sender.close();
    assert_eq!(sender.end(begin), 0, "it was tried once, and counted");
    assert_eq!(of(&counts.table().samples, "failed"), 30);
    assert!(begin.elapsed() < AT_THE_END);
}
