//! Tasks that end during a run.

use super::Sampler;

impl Sampler {
    /// Returns whether every sampled task has ended, and every task that it started. Events of CPUs
    /// never end. Call it with every look: it asks the kernel about one event that has not ended,
    /// however many there are.
    pub fn tasks_have_ended(&mut self) -> bool {
        while let Some(member) = self.members.get(self.ended_tasks) {
            if !member.event.task_has_ended() {
                return false;
            }
            self.ended_tasks += 1;
        }
        true
    }
}
