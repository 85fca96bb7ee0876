//! A seed gives one world, and worlds are as their plans describe them.

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
        let reads: Vec<u32> = world.readable_classes(question.reader).collect();
        let sees = |entry: &u32| reads.contains(&world.entries[*entry as usize].class);
        assert_eq!(
            question.gold.iter().all(sees),
            question.kind != QuestionKind::Unanswerable,
            "{question:?}"
        );
    }
}
