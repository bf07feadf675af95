//! Sentences for the reader of a capture about what could not be named.

/// A list of sentences, each of them once. The same problem tends to occur many times, so there is
/// a largest number of them.
#[derive(Debug)]
pub struct Notes {
    sentences: Vec<String>,
    most: usize,
}

impl Notes {
    /// Creates an empty list of at most `most` sentences.
    pub const fn new(most: usize) -> Self {
        Self { sentences: Vec::new(), most }
    }

    /// Adds a sentence, unless it is in the list or the list is full.
    pub fn add(&mut self, sentence: String) {
        if self.sentences.len() < self.most && !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }

    /// Returns the sentences that were added since the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sentences)
    }
}
