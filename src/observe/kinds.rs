//! Declares the kinds of events, one entry a kind. Knows nothing of who publishes them.

/// A kind of event.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// `family.what`, as it is written and filtered by.
    pub word: &'static str,
    /// When it is published, and what `data` holds.
    pub help: &'static str,
}

macro_rules! kinds {
    ($($name:ident $word:literal $help:literal)*) => {
        $(#[doc = $help] pub static $name: Kind = Kind { word: $word, help: $help };)*
        /// All of them; the order is that of the documentation.
        pub static ALL: &[&Kind] = &[$(&$name),*];
    };
}

kinds! {
    DAEMON_STARTED "daemon.started" "the daemon is ready: `pid`, `version`, `key`"
    DAEMON_STOPPING "daemon.stopping" "the daemon is about to stop: `why`"
    CONFIG_CHANGED "config.changed" "another configuration is in force: `key`"
    CONFIG_BROKEN "config.broken" "the configuration on disk cannot be used, and the last good one stays: `message`"
    SERVER_STARTED "server.started" "an instance of a server runs: `instance`, `pid`"
    SERVER_STOPPED "server.stopped" "an instance of a server was stopped: `instance`, `why`"
    SERVER_FAILED "server.failed" "an instance did not start, or ended by itself: `instance`, `message`"
    TOOLS_CHANGED "tools.changed" "a server's list of tools is another than before: `tools`, how many"
    CALL_FINISHED "call.finished" "a tool call has an outcome: `tool`, `ms`, `outcome` (ok, or the kind of the error), `run`"
    SERVER_LOGGED "server.logged" "a server logs something: `level`, `logger`, `data`, as it sent them; once for each session in whose call it may have been"
    RESOURCE_UPDATED "resource.updated" "a resource that was subscribed to changed; `uri` beside `data` says which"
    RESOURCE_LIST_CHANGED "resource.list" "a server has other resources now"
    PROMPT_LIST_CHANGED "prompt.list" "a server has other prompts now"
    ELICIT_VISITED "elicit.visited" "what a server wanted opened was seen to: `elicitationId`"
    ELICIT_ASKED "elicit.asked" "a server asks something: `question`, `message`, `mode`, `tool`, `task`"
    ELICIT_CLOSED "elicit.closed" "a question is over: `question`, `outcome` (accept, decline, cancel, expired, withdrawn), `by`"
    TASK_CHANGED "task.changed" "a call goes on without its caller, waits, or is over: `task`, `tool`, `status`, `owner`"
    ARTIFACT_STORED "artifact.stored" "something is kept: `id`, `name`, `mime`, `size`, `sha256`, `run`; `uri` beside `data` names it"
    ARTIFACT_REMOVED "artifact.removed" "something is kept no longer: `id`, `name`, `size`, `run`, `why` (asked, expired, quota); `uri` beside `data` names it"
    RUN_OPENED "run.opened" "a program begins: `run`"
    RUN_CLOSED "run.closed" "a program is over: `run`"
}

/// The kind with that word.
pub fn of_word(word: &str) -> Option<&'static Kind> {
    ALL.iter().copied().find(|kind| kind.word == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_family_and_a_word_of_its_own() {
        for (at, kind) in ALL.iter().enumerate() {
            assert!(kind.word.split('.').count() == 2, "{}", kind.word);
            assert!(ALL[..at].iter().all(|other| other.word != kind.word), "{} is there twice", kind.word);
            assert!(std::ptr::eq(of_word(kind.word).unwrap(), *kind));
        }
        assert!(of_word("call").is_none());
    }
}
