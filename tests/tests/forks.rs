//! Forks as a person meets them: another way from the same point, while the first stays as it was (cases FRK-02, FRK-04).

use outlast_tests::world::World;

#[test]
fn a_question_is_answered_one_way_in_the_run_and_another_way_in_its_fork() {
    let world = World::with_examples();
    let end = world.run(&["run", "--task", "count the lines", "--id", "first"]);
    assert_eq!(end.code, Some(3), "{end:?}");
    let before = world.json(&["events", "first", "--json"]);

    let mut fork = world.start(&["chat", "--fork", "first"]);
    fork.line("the fork", |line| line.contains("run fork-"));
    fork.line("the question", |line| line.contains("Run shell?"));
    // Both are open at once.
    let mut parent = world.start(&["chat", "--resume", "first"]);
    parent.line("the question", |line| line.contains("Run shell?"));
    fork.say("no");
    let end = fork.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.stdout.contains("The command was refused"), "{end:?}");
    assert_eq!(world.json(&["events", "first", "--json"]), before, "the parent is as it was");
    parent.say("yes");
    let end = parent.finish();
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(end.stdout.contains("ran a command"), "{end:?}");

    let tree = world.json(&["tree", "first", "--json"]);
    assert_eq!(tree["items"].as_array().map(Vec::len), Some(2), "{tree}");
    assert_eq!(tree["items"][1]["parent"]["run"], "first", "{tree}");
    let drawn = world.run(&["tree", "first"]).stdout;
    assert!(drawn.contains("└─ @"), "{drawn}");
}

#[test]
fn a_conversation_goes_on_in_a_fork_and_back() {
    let world = World::with_examples();
    let mut chat = world.start(&["chat"]);
    chat.say("count the lines");
    chat.line("the question", |line| line.contains("Run shell?"));
    chat.say("/fork 1");
    chat.line("the fork", |line| line.contains("run fork-"));
    chat.line("the question of the fork", |line| line.contains("Run shell?"));
    chat.say("/tree");
    chat.line("the fork in the tree", |line| line.contains("└─ @1 fork-"));
    chat.say("/fork x");
    let end = chat.finish();
    assert!(end.stdout.contains("the number of an event is expected"), "{end:?}");
}

#[test]
fn a_fork_that_cannot_be_says_why() {
    let world = World::with_examples();
    let end = world.run(&["run", "examples/deploy.flow", "--input", r#"{"version": "1"}"#, "--id", "d"]);
    assert_eq!(end.code, Some(3), "{end:?}");
    let end = world.run(&["fork", "d@99"]);
    assert_eq!(end.code, Some(2), "{end:?}");
    assert!(end.stderr.contains("run d has events 1 to"), "{end:?}");
    let end = world.run(&["fork", "nobody"]);
    assert!(end.code != Some(0) && end.stderr.contains("there is no run nobody"), "{end:?}");
}
