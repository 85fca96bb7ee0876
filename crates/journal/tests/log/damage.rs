//! Flips a bit of every byte, and zeroes every sector. The damage is always reported and never
//! returned as data, and every other frame is readable.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnkeep_journal::{
    Damage, FileLog, Inspected, Log, LogOptions, MemoryStorage, OpenError, Position, ReadError,
    inspect,
};

use crate::support::{Place, append, content, content_of, log_of, open, options, places};

type Files = BTreeMap<String, Vec<u8>>;

const FRAMES: u64 = 10;

/// What opening and reading a log came to.
#[derive(Debug, Default)]
struct Read {
    /// The frames that came whole, with all their payloads.
    whole: Vec<u64>,
    /// Files and offsets of the damage.
    named: Vec<(String, u64)>,
    torn: Option<(String, u64)>,
}

fn read(files: &Files, known_durable: Option<Position>) -> Read {
    let disk = MemoryStorage::with_files(files.clone());
    let mut read = Read::default();
    let log = match FileLog::open(
        Arc::new(disk.clone()),
        LogOptions {
            known_durable,
            ..options()
        },
    ) {
        Ok((log, recovered)) => {
            read.torn = recovered.torn.map(|torn| (torn.file, torn.offset));
            log
        }
        Err(
            OpenError::Damaged { file, offset, .. }
            | OpenError::Read(ReadError::Damaged { file, offset, .. }),
        ) => {
            assert_eq!(
                &disk.files(),
                files,
                "a log that is refused is left as it was"
            );
            read.named.push((file, offset));
            return read;
        }
        Err(OpenError::UnknownVersion { file, .. }) => {
            assert_eq!(
                &disk.files(),
                files,
                "a log of another version is left as it was"
            );
            read.named.push((file, 0));
            return read;
        }
        Err(other) => panic!("{other}"),
    };
    let reader = log.reader();
    for frame in log.reader().frames_from(Position(1)) {
        let frame = match frame {
            Ok(frame) => frame,
            Err(ReadError::Damaged { file, offset, .. }) => {
                read.named.push((file, offset));
                break;
            }
            Err(other) => panic!("{other}"),
        };
        let before = read.named.len();
        for blob in &frame.blobs {
            if let Err(turnkeep_journal::BlobReadError::Damaged { file, offset }) =
                reader.read_blob(blob.locator, blob.stored_len, blob.crc)
            {
                read.named.push((file, offset));
            }
        }
        if before == read.named.len() {
            assert_eq!(
                content_of(&frame, &reader),
                content(frame.position.0),
                "a wrong frame was served"
            );
            read.whole.push(frame.position.0);
        }
    }
    read
}

/// What an inspection came to: whole frames, damaged places, frames with damaged payloads.
#[derive(Debug, Default)]
struct Verdict {
    whole: Vec<u64>,
    damages: Vec<Damage>,
    bad_payloads: Vec<u64>,
}

fn verdict(files: &Files, hashes: &[[u8; 32]]) -> Verdict {
    let mut verdict = Verdict::default();
    for inspected in inspect(Arc::new(MemoryStorage::with_files(files.clone()))).unwrap() {
        match inspected {
            Inspected::Frame { frame, .. } => {
                let position = frame.position.0;
                assert_eq!(
                    frame.hash,
                    hashes[usize::try_from(position).unwrap() - 1],
                    "a wrong frame was shown"
                );
                let sound = (0..frame.blobs.len()).all(|blob| frame.blob_bytes(blob).is_some());
                let list = if sound {
                    &mut verdict.whole
                } else {
                    &mut verdict.bad_payloads
                };
                list.push(position);
            }
            Inspected::Damage(damage) => verdict.damages.push(damage),
        }
    }
    verdict
}

/// What a damage does to a log: the file, the bytes, and the frames that it touches.
struct Wound {
    file: String,
    bytes: std::ops::Range<usize>,
    touched: Vec<Place>,
    what: String,
}

impl Wound {
    fn new(places: &[Place], file: &str, bytes: std::ops::Range<usize>, what: String) -> Self {
        let hit = |place: &&Place| {
            place.file == file && place.offset < bytes.end && bytes.start < place.end
        };
        let touched = places.iter().filter(hit).cloned().collect();
        Self {
            file: file.to_owned(),
            bytes,
            touched,
            what,
        }
    }

    /// Whether only bytes are hit that mean nothing: padding, and zeros behind the last frame.
    fn is_harmless(&self) -> bool {
        self.touched.is_empty() && self.bytes.start >= 64
    }

    fn touches(&self, position: u64) -> bool {
        self.touched.iter().any(|place| place.position == position)
    }
}

/// Opening and inspecting a wounded log.
fn check(wounded: &Files, places: &[Place], wound: &Wound) {
    let what = &wound.what;
    for known in [None, Some(Position(FRAMES))] {
        let read = read(wounded, known);
        let names_it = |(file, offset): &(String, u64)| {
            *file == wound.file && *offset < wound.bytes.end as u64
        };
        assert!(read.named.iter().all(names_it), "{what}: {read:?}");
        assert!(read.torn.as_ref().is_none_or(names_it), "{what}: {read:?}");
        let lost: Vec<u64> = (1..=FRAMES)
            .filter(|position| !read.whole.contains(position))
            .collect();
        // Whoever knows how far the log went sees that its end is missing, even if that is all
        // zeros.
        let ends_early =
            lost.contains(&FRAMES) && read.whole.iter().max().is_none_or(|&last| last < FRAMES);
        let zeroed = wounded[&wound.file].len() == wound.bytes.end && ends_early;
        let reported = !read.named.is_empty() || read.torn.is_some() || zeroed;
        assert!(
            lost.is_empty() || reported,
            "{what}: {lost:?} are lost and nobody says so"
        );
        assert!(
            known.is_none() || read.torn.is_none() || wound.is_harmless(),
            "{what}: durable, not torn"
        );
        if read.named.is_empty() {
            assert!(
                lost.iter()
                    .all(|&position| wound.touches(position) || wound.bytes.start < 64),
                "{what}: {lost:?}"
            );
        }
        assert!(
            read.whole.iter().all(|&position| !wound.touches(position)),
            "{what}: {read:?}"
        );
    }
    let hashes: Vec<_> = places.iter().map(|place| place.hash).collect();
    let verdict = verdict(wounded, &hashes);
    for place in places {
        let whole = verdict.whole.contains(&place.position);
        assert_eq!(
            whole,
            !wound.touches(place.position),
            "{what}, frame {}: {verdict:?}",
            place.position
        );
    }
    let headers = wound.bytes.start < 64;
    let gone = wound
        .touched
        .iter()
        .filter(|place| !verdict.bad_payloads.contains(&place.position));
    let gone: Vec<u64> = gone.map(|place| place.position).collect();
    let names = |position: u64| {
        verdict.damages.iter().any(|d| {
            d.file == wound.file
                && d.first.0 <= position
                && (d.resumes_at.0 == 0 || d.resumes_at.0 > position)
        })
    };
    let vanished = gone.contains(&FRAMES) && verdict.damages.is_empty();
    let zeroed = vanished
        && wounded[&wound.file][wound.touched[0].offset..]
            .iter()
            .all(|&b| b == 0);
    assert!(
        zeroed || gone.iter().all(|&position| names(position)),
        "{what}: {verdict:?}"
    );
    assert!(
        !headers || zeroed || !verdict.damages.is_empty(),
        "{what}: {verdict:?}"
    );
}

fn sample() -> (Files, Vec<Place>) {
    let files = log_of(FRAMES, options());
    assert!(files.len() >= 3);
    let places = places(&files);
    assert_eq!(places.len() as u64, FRAMES);
    (files, places)
}

#[test]
fn a_bit_flipped_at_any_byte() {
    let (files, places) = sample();
    for (name, content) in &files {
        for at in 0..content.len() {
            let mut wounded = files.clone();
            wounded.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
            let wound = Wound::new(
                &places,
                name,
                at..at + 1,
                format!("bit of byte {at} of {name}"),
            );
            check(&wounded, &places, &wound);
        }
    }
}

#[test]
fn any_sector_zeroed() {
    let (files, places) = sample();
    for (name, content) in &files {
        for start in (0..content.len()).step_by(512) {
            let end = content.len().min(start + 512);
            if content[start..end].iter().all(|&b| b == 0) {
                continue;
            }
            let mut wounded = files.clone();
            wounded.get_mut(name).unwrap()[start..end].fill(0);
            // Zeroing changes only the bytes that were not zero.
            let hurt = (start..end).filter(|&at| content[at] != 0);
            let hurt = hurt.clone().min().unwrap()..hurt.max().unwrap() + 1;
            let wound = Wound::new(&places, name, hurt, format!("sector at {start} of {name}"));
            check(&wounded, &places, &wound);
        }
    }
}

fn refusal(files: Files) -> (String, u64, String) {
    match FileLog::open(Arc::new(MemoryStorage::with_files(files)), options()) {
        Err(OpenError::Damaged { file, offset, what }) => (file, offset, what),
        other => panic!("{:?}", other.map(|(_, recovered)| recovered)),
    }
}

fn segment(number: u64) -> String {
    format!("log/{number:010}.seg")
}

#[test]
fn a_missing_segment_is_named_by_both() {
    let (files, places) = sample();
    let of_second: Vec<u64> = places
        .iter()
        .filter(|p| p.file == segment(2))
        .map(|p| p.position)
        .collect();
    let mut without = files.clone();
    without.remove(&segment(2));
    assert_eq!(
        refusal(without.clone()),
        (segment(2), 0, "the segment is missing".into())
    );
    let hashes: Vec<_> = places.iter().map(|place| place.hash).collect();
    let verdict = verdict(&without, &hashes);
    let [damage] = &verdict.damages[..] else {
        panic!("{verdict:?}")
    };
    assert_eq!(
        (damage.file.clone(), damage.first.0),
        (segment(2), of_second[0])
    );
    assert_eq!(damage.resumes_at.0, of_second.last().unwrap() + 1);
    assert_eq!(verdict.whole.len(), places.len() - of_second.len());
}

#[test]
fn a_segment_in_the_wrong_place_is_refused_and_not_shown() {
    let (files, places) = sample();
    let mut swapped = files.clone();
    swapped.insert(segment(2), files[&segment(1)].clone());
    assert_eq!(
        refusal(swapped.clone()),
        (segment(2), 0, "the segment belongs elsewhere".into())
    );
    let hashes: Vec<_> = places.iter().map(|place| place.hash).collect();
    let shown = verdict(&swapped, &hashes);
    assert_eq!(shown.damages[0].what, "the segment belongs elsewhere");

    let stranger = log_of(
        FRAMES,
        LogOptions {
            store_id_if_new: [5; 16],
            ..options()
        },
    );
    let mut mixed = files.clone();
    mixed.insert(segment(2), stranger[&segment(2)].clone());
    assert_eq!(
        refusal(mixed.clone()),
        (segment(2), 0, "the segment belongs elsewhere".into())
    );
    assert_eq!(
        verdict(&mixed, &hashes).damages[0].what,
        "the segment belongs elsewhere"
    );
}

#[test]
fn a_log_of_another_version_is_refused_and_not_touched() {
    let (files, _) = sample();
    for name in files.keys() {
        let mut newer = files.clone();
        newer.get_mut(name).unwrap()[7] = 2;
        let disk = MemoryStorage::with_files(newer.clone());
        match FileLog::open(Arc::new(disk.clone()), options()) {
            Err(OpenError::UnknownVersion { file, version: 2 }) => assert_eq!(&file, name),
            other => panic!("{:?}", other.map(|(_, recovered)| recovered)),
        }
        assert_eq!(disk.files(), newer);
    }
}

#[test]
fn frames_of_another_history_break_the_chain() {
    // Same store, same positions, other content: the frames are sound, but not in this chain.
    let disk = MemoryStorage::new();
    let (mut log, _) = open(&disk);
    append(&mut log, (1..=FRAMES).map(|n| if n == 2 { 5 } else { n }));
    drop(log);
    let (files, places) = sample();
    let mut mixed = files.clone();
    mixed.insert(segment(1), disk.files()[&segment(1)].clone());
    let inspected = inspect(Arc::new(MemoryStorage::with_files(mixed))).unwrap();
    let broken = inspected
        .filter(|i| matches!(i, Inspected::Damage(d) if d.what.contains("chain is broken")));
    assert_eq!(broken.count(), 1);
    assert!(places.iter().any(|place| place.file == segment(2)));
}

#[test]
fn a_stored_copy_of_a_log_is_never_taken_for_the_log() {
    // A client stores the bytes of a log of another store, with later positions, as a payload.
    let stranger = log_of(
        FRAMES,
        LogOptions {
            store_id_if_new: [5; 16],
            ..options()
        },
    );
    let mut payload = content(1);
    payload.blobs = stranger.values().cloned().collect();
    // At every alignment.
    payload.blobs = (0..8)
        .map(|shift| [&[1; 8][..shift], &payload.blobs.concat()].concat())
        .collect();
    let disk = MemoryStorage::new();
    let (mut log, _) = open(&disk);
    append(&mut log, [1]);
    log.append(&crate::support::batch_of(&payload)).unwrap();
    drop(log);
    let files = disk.files();
    let place = places(&files).pop().unwrap();
    // Its header is torn: a torn tail, for no frame of ours follows.
    let mut torn = files.clone();
    torn.get_mut(&place.file).unwrap()[place.offset + 40] ^= 1;
    let (log, recovered) = open(&MemoryStorage::with_files(torn.clone()));
    assert!(recovered.torn.is_some());
    assert_eq!(log.reader().last_position(), Position(1));
    let shown = inspect(Arc::new(MemoryStorage::with_files(torn))).unwrap();
    let frames = shown.filter(|inspected| matches!(inspected, Inspected::Frame { .. }));
    assert_eq!(frames.count(), 1);
}
