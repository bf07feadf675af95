//! The thread of `precise top` that finds the types of sampled objects. It reads debug information,
//! which can take seconds, so the screen does not wait for it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use precise::kernel::clock::thread_cpu_ns;
use precise::reader::{self, ReaderUse};
use precise::screen::{Screen, TypesAnswer, TypesQuestion};
use precise::views::types::{TypesOptions, types};

use super::code::LocalFiles;

/// The most types of each event.
const MOST_TYPES: usize = 100;

/// The thread, and when it may be asked again.
pub struct TypesThread {
    asks: Sender<TypesQuestion>,
    answers: Receiver<(TypesAnswer, Duration)>,
    due: Instant,
}

impl TypesThread {
    /// Starts the thread, which ends with the handle. No file is read yet.
    pub fn start() -> io::Result<Self> {
        let (asks, questions) = channel::<TypesQuestion>();
        let (give, answers) = channel();
        let body = move || {
            // Kept between the questions, with the files that it has open.
            let mut files = LocalFiles::here();
            for question in questions {
                let begin = cpu_ns();
                let options = TypesOptions { limit: MOST_TYPES, ..TypesOptions::default() };
                let found = types(&question.capture, &options, &mut files);
                let answer = question.answered(found.map_err(|error| error.to_string()));
                let took = Duration::from_nanos(cpu_ns().saturating_sub(begin));
                if give.send((answer, took)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("types".into()).spawn(body)?;
        Ok(Self { asks, answers, due: Instant::now() })
    }

    /// Gives the screen an answer, and takes its question. Between two questions passes `pause`
    /// times the CPU time that the answer took, and at least `often`. Returns whether the screen
    /// has something new to show.
    pub fn turn(&mut self, screen: &mut Screen, often: Duration, pause: u32) -> bool {
        let answered = self.answers.try_recv();
        let is_new = answered.is_ok();
        if let Ok((answer, took)) = answered {
            screen.types_answered(answer);
            self.due = Instant::now() + often.max(took.saturating_mul(pause));
        }
        if Instant::now() >= self.due
            && let Some(question) = screen.types_question()
        {
            // A thread that has died answers no more; the screen says that it waits.
            let _dead = self.asks.send(question);
        }
        is_new
    }
}

/// Returns the CPU time in nanoseconds of this thread and of the processes that read code.
fn cpu_ns() -> u64 {
    thread_cpu_ns() + reader::cpu_ns(ReaderUse::Code)
}
