//! Light English morphology: which words say nothing, and which endings do not matter.
//!
//! A stem need not be a word. Two words with one stem are meant to be one word's forms; the rules are
//! few on purpose, since a stem that is too short finds what nobody asked for.

/// Words that are too common to tell entries apart. Sorted. `may` is a month and not among them.
const STOP: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "arent", "as", "at",
    "be", "because", "been", "before", "being", "both", "but", "by", "can", "cannot", "cant", "could",
    "couldnt", "did", "didnt", "do", "does", "doesnt", "doing", "dont", "each", "for", "from", "had",
    "hadnt", "has", "hasnt", "have", "havent", "having", "he", "her", "here", "hers", "him", "his", "how",
    "i", "if", "im", "in", "into", "is", "isnt", "it", "its", "ive", "just", "me", "more", "most", "my",
    "no", "nor", "not", "now", "of", "on", "only", "or", "other", "our", "ours", "out", "over", "own",
    "shall", "she", "should", "shouldnt", "so", "some", "such", "than", "that", "thats", "the", "their",
    "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "very",
    "was", "wasnt", "we", "were", "werent", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "wont", "would", "wouldnt", "you", "your", "yours",
];

/// How many words say nothing.
pub(super) const STOPS: usize = STOP.len();

/// Shorter words are left as they are.
const STEMMED_BYTES_MIN: usize = 4;

/// The stop words as numbers, in the same order.
const STOP_NUMBERS: [u64; STOP.len()] = {
    let mut numbers = [0; STOP.len()];
    let mut index = 0;
    while index < STOP.len() {
        numbers[index] = as_number(STOP[index].as_bytes());
        index += 1;
    }
    numbers
};

/// Up to eight bytes, the first one highest.
const fn as_number(word: &[u8]) -> u64 {
    let mut number = 0;
    let mut index = 0;
    while index < 8 {
        number = number << 8 | if index < word.len() { word[index] as u64 } else { 0 };
        index += 1;
    }
    number
}

/// Whether a folded word says nothing.
pub(super) fn is_stop(word: &str) -> bool {
    stop_number(word).is_some()
}

/// The number of a word that says nothing.
pub(super) fn stop_number(word: &str) -> Option<usize> {
    (word.len() <= 8).then(|| STOP_NUMBERS.binary_search(&as_number(word.as_bytes())).ok())?
}

/// Whether this is a piece of a word that says nothing.
pub(super) fn is_in_a_stop(piece: &str) -> bool {
    STOP.iter().any(|stop| stop.contains(piece))
}

/// The beginning of a piece of a word that stemming leaves in every word with this piece, wherever the word
/// ends: nothing from where an ending may begin. Both are lower-case ASCII letters.
pub(super) fn kept(piece: &str) -> &str {
    if ENDINGS.iter().any(|ending| ending.contains(piece)) {
        return "";
    }
    let bytes = piece.as_bytes();
    let may_go = |rest: &str| ENDINGS.iter().any(|ending| ending.starts_with(rest));
    let may_begin = |at: &usize| {
        let doubled = *at > 0 && *at < bytes.len() && bytes[*at] == bytes[*at - 1];
        may_go(&piece[*at..]) || doubled && may_go(&piece[*at + 1..])
    };
    &piece[..(0..=bytes.len()).find(may_begin).unwrap_or(bytes.len())]
}

/// What stemming may take off a word or change; a doubled letter may go before it.
const ENDINGS: &[&str] = &[
    "s", "ings", "inges", "eds", "edes", "es", "eings", "einges", "eeds", "eedes", "ees", "yings", "yinges",
    "yeds", "yedes", "ys", "yes", "ies", "ied", "ieds",
];

/// Cuts a folded word down to its stem. Words with anything but ASCII letters are left alone.
pub(super) fn stem(word: &mut String) {
    if word.len() < STEMMED_BYTES_MIN || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    plural(word);
    if !cut_verb(word, "ing") {
        cut_verb(word, "ed");
    }
    if word.len() >= STEMMED_BYTES_MIN && word.ends_with('e') {
        word.pop();
    }
    if word.len() >= 3 && word.ends_with('y') && !ends_in_vowel(&word[..word.len() - 1]) {
        word.pop();
        word.push('i');
    }
}

fn cut(word: &mut String, bytes: usize) {
    word.truncate(word.len() - bytes);
}

fn plural(word: &mut String) {
    let es = ["ches", "shes", "sses", "xes", "zzes"];
    if word.len() > 4 && word.ends_with("ies") {
        cut(word, 3);
        word.push('y');
    } else if es.iter().any(|ending| word.ends_with(ending)) {
        cut(word, 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        cut(word, 1);
    }
}

/// Cuts a verb's ending when what stays could be a word; tells whether it did.
fn cut_verb(word: &mut String, ending: &str) -> bool {
    let Some(rest) = word.strip_suffix(ending) else { return false };
    if rest.len() < 3 && !(rest.len() == 2 && ending == "ing") || !rest.bytes().any(is_vowel) {
        return false;
    }
    cut(word, ending.len());
    let bytes = word.as_bytes();
    let doubled = bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
    if doubled && !ends_in_vowel(word) && !word.ends_with(['l', 's', 'z']) {
        word.pop();
    } else if ending == "ed" && word.ends_with('i') {
        word.pop();
        word.push('y');
    }
    true
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

fn ends_in_vowel(word: &str) -> bool {
    word.bytes().next_back().is_some_and(|byte| is_vowel(byte) && byte != b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_piece_is_in_the_stem_of_every_word_with_it() {
        let words = [
            "stopping",
            "stoppings",
            "studies",
            "studied",
            "studying",
            "agreeing",
            "horses",
            "boxes",
            "classes",
            "parties",
            "refunded",
            "refunds",
            "running",
            "baking",
            "ties",
            "being",
            "needs",
            "sees",
            "beyond",
            "eye",
            "eyes",
            "add",
            "adding",
            "egged",
            "fuzzes",
            "status",
        ];
        for word in words {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            for start in 0..word.len() {
                for end in start..=word.len() {
                    let kept = kept(&word[start..end]);
                    assert!(stemmed.contains(kept), "{kept} of {} in {stemmed}", &word[start..end]);
                }
            }
        }
        assert_eq!((kept("refund"), kept("stopping"), kept("ing")), ("refund", "stop", ""));
    }

    fn stemmed(word: &str) -> String {
        let mut word = word.to_owned();
        stem(&mut word);
        word
    }

    #[test]
    fn forms_of_one_word_share_a_stem() {
        for forms in [
            &["refund", "refunds", "refunded", "refunding"][..],
            &["retry", "retries", "retried", "retrying"],
            &["change", "changes", "changed", "changing"],
            &["plan", "plans", "planned", "planning"],
            &["deploy", "deploys", "deployed", "deploying"],
            &["patch", "patches", "patched", "patching"],
            &["address", "addresses", "addressed"],
            &["fail", "fails", "failed", "failing"],
            &["call", "calls", "called", "calling"],
            &["day", "days"],
            &["file", "files", "filed", "filing"],
        ] {
            for form in forms {
                assert_eq!(stemmed(form), stemmed(forms[0]), "{form}");
            }
        }
    }

    #[test]
    fn other_words_keep_apart_and_keep_their_ends() {
        for word in ["status", "this", "class", "bus", "red", "ring", "string", "need", "sha256", "été", "is"]
        {
            assert_eq!(stemmed(word), word);
        }
        assert_ne!(stemmed("port"), stemmed("portal"));
    }

    #[test]
    fn stop_words_are_sorted_and_spare_the_months() {
        assert!(STOP.is_sorted() && STOP_NUMBERS.is_sorted());
        assert!(STOP.iter().all(|word| word.len() <= 8 && is_stop(word)));
        assert!(is_stop("the") && is_stop("wouldnt"));
        assert!(!is_stop("may") && !is_stop("refund"));
    }
}
