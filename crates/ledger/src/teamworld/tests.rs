//! A seed gives one world, and search reaches its goals on it.

use super::*;

#[test]
fn a_seed_gives_the_same_world() {
    let plan = Plan {
        questions: 20,
        ..Plan::new(5, 2000)
    };
    let (one, other) = (TeamWorld::new(&plan), TeamWorld::new(&plan));
    assert_eq!(one.entries, other.entries);
    assert_eq!(
        format!("{:?}", one.questions),
        format!("{:?}", other.questions)
    );
    assert_ne!(
        one.entries,
        TeamWorld::new(&Plan { seed: 6, ..plan }).entries
    );
}

#[test]
fn worlds_are_as_they_are_described() {
    let world = TeamWorld::new(&Plan::new(1, 20_000));
    assert!(world.entries.is_sorted_by_key(|said| said.time));
    let private = world.entries.iter().filter(|said| said.class != 0).count();
    assert!(
        (5000..7000).contains(&private),
        "{private} of 20000 are private"
    );
    for kind in QuestionKind::ALL {
        let asked = world
            .questions
            .iter()
            .filter(|question| question.kind == kind);
        assert_eq!(asked.count(), 300, "{kind:?}");
    }
    for question in &world.questions {
        let reads = world.readable(question.reader);
        let sees = |entry: &u32| reads.contains(&ClassId(world.entries[*entry as usize].class));
        assert_eq!(
            question.gold.iter().all(sees),
            question.kind != QuestionKind::Unanswerable,
            "{question:?}"
        );
    }
}

#[test]
fn search_reaches_its_goals() {
    for seed in [1, 2, 3] {
        let world = TeamWorld::new(&Plan::new(seed, 20_000));
        let quality = measure(&world, &world.index());
        let mut missed = Vec::new();
        for (kind, tally) in &quality.kinds {
            let score = kind.score();
            println!(
                "seed {seed}: {} {} {:.3}",
                kind.name(),
                score.name,
                tally.mean()
            );
            if tally.mean() < score.goal {
                missed.push(format!(
                    "{} {:.3} < {}",
                    kind.name(),
                    tally.mean(),
                    score.goal
                ));
            }
        }
        assert_eq!(quality.leaks, 0, "seed {seed}");
        assert!(missed.is_empty(), "seed {seed}: {missed:?}");
    }
}
