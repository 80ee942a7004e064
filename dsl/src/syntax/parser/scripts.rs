//! Tests: the steps of a `test` block.
//!
//! Leaves running them to the test runner. Invariant: a step begins with its own word, so one bad step does not
//! hide the next.

use super::Parser;
use super::recover::Items;
use crate::syntax::kind::SyntaxKind;

const STEPS: &[(&str, SyntaxKind)] = &[
    ("start", SyntaxKind::StepStart),
    ("stub", SyntaxKind::StepStub),
    ("allow", SyntaxKind::StepAllow),
    ("send", SyntaxKind::StepSend),
    ("close", SyntaxKind::StepClose),
    ("cancel", SyntaxKind::StepCancel),
    ("answer", SyntaxKind::StepAnswer),
    ("advance", SyntaxKind::StepAdvance),
    ("crash", SyntaxKind::StepCrash),
    ("lose", SyntaxKind::StepLose),
    ("settle", SyntaxKind::StepSettle),
    ("release", SyntaxKind::StepRelease),
    ("expect", SyntaxKind::StepExpect),
];

/// Words with which an expression goes on; all others begin something new.
const OPERATORS: &[&str] = &["and", "or", "in", "is", "not"];

impl Parser<'_> {
    /// `test ::= "test" STRING "{" step* "}"`
    pub(super) fn test(&mut self) {
        self.node(SyntaxKind::Test, |p| {
            p.bump();
            p.string();
            let opened = p.span();
            if !p.expect(SyntaxKind::LBrace, "`{` and steps") {
                return;
            }
            p.in_test = true;
            loop {
                let ends = p.at(SyntaxKind::RBrace) || p.at_end() || (p.at_line_start() && p.at_decl());
                if ends {
                    break;
                }
                let step = STEPS.iter().find(|(word, _)| p.at_word(word));
                if let Some((word, kind)) = step {
                    p.node(*kind, |p| p.test_step(word));
                } else {
                    p.unexpected("a step: `start`, `stub`, `send`, `answer`, `advance`, `expect`, …");
                    p.skip(|p| p.at_line_start() && (p.at_test_step() || p.at_decl()));
                }
            }
            p.in_test = false;
            p.close(SyntaxKind::RBrace, opened);
        });
    }

    /// Whether the first word of a step stands at the beginning of a line.
    pub(super) fn at_test_step(&self) -> bool {
        self.at_line_start() && STEPS.iter().any(|(word, _)| self.at_word(word)) && self.is_step_follower()
    }

    /// A variable may be named like a step; a step is followed by what no expression goes on with.
    fn is_step_follower(&self) -> bool {
        matches!(
            self.nth(1),
            SyntaxKind::Lower | SyntaxKind::Upper | SyntaxKind::StringOpen | SyntaxKind::Dur
        )
    }

    fn test_step(&mut self, word: &str) {
        self.bump();
        match word {
            "start" => {
                self.upper_ref("a flow");
                self.args_or_missing();
            }
            "stub" => self.stub(),
            "allow" => self.expr(),
            "send" => self.construct_or_missing("a message"),
            "close" | "cancel" => {}
            "answer" => self.answer(),
            "advance" => self.duration(),
            "crash" => {
                self.expect_word("at");
                self.path();
            }
            "lose" => {
                self.expect_word("worker");
            }
            "settle" => self.settlement(),
            "release" => {
                self.lower_ref("an activity");
            }
            "expect" => self.check(),
            word => unreachable!("the table of steps knows the word {word}"),
        }
    }

    fn construct_or_missing(&mut self, what: &str) {
        if self.after_type_path(0).is_some() { self.nested(Self::construct) } else { self.missing(what) }
    }

    /// `"stub" LNAME ("(" (LNAME ("," LNAME)*)? ")")? ("if" expr)? "gives" (reply | "[" reply ("," reply)* "]")`
    fn stub(&mut self) {
        self.lower_ref("an activity");
        if self.at(SyntaxKind::LParen) {
            self.list(SyntaxKind::LParen, Items::Named("a name for an argument"), |p| {
                p.variable("an argument");
            });
        }
        if self.eat_word("if") {
            self.expr();
        }
        self.expect_word("gives");
        if self.at(SyntaxKind::LBrack) {
            self.list(SyntaxKind::LBrack, Items::Values("a reply"), Self::reply);
        } else if self.at_item_of(Items::Values("a reply")) {
            self.reply();
        } else {
            self.missing("a reply, or `[` and replies");
        }
    }

    /// `reply ::= ("after" DUR)? ("costs" NUMBER)? (expr | "fail" (construct | STRING) | "timeout" | "unknown")`
    fn reply(&mut self) {
        self.node(SyntaxKind::Reply, |p| {
            if p.eat_word("after") {
                p.duration();
            }
            // An argument may be named `costs`.
            if p.at_word("costs") && matches!(p.nth(1), SyntaxKind::Int | SyntaxKind::Number) {
                p.bump();
                p.node(SyntaxKind::Literal, Self::bump);
            }
            let alone = match p.nth(1) {
                // A step begins with a word, and so do some operators.
                SyntaxKind::Lower => !OPERATORS.contains(&p.nth_text(1)),
                next => matches!(
                    next,
                    SyntaxKind::Comma | SyntaxKind::RBrack | SyntaxKind::RBrace | SyntaxKind::Eof
                ),
            };
            if p.eat_word("fail") {
                if p.at(SyntaxKind::StringOpen) {
                    p.string();
                } else {
                    p.construct_or_missing("an error or a text");
                }
            } else if alone && p.at_word_in(&["timeout", "unknown"]) {
                p.bump();
            } else {
                p.expr();
            }
        });
    }

    /// `"answer" STRING? FIELD fieldpat_v? ("by" STRING)?`
    fn answer(&mut self) {
        if self.at(SyntaxKind::StringOpen) {
            self.string();
        }
        self.lower_ref("an answer such as `approve` or `reject`");
        if self.at(SyntaxKind::LBrace) {
            self.nested(Self::inits);
        }
        if self.eat_word("by") {
            self.string_or_missing("who answers, in quotes");
        }
    }

    /// `"settle" LNAME "as" (construct | "fail")`
    fn settlement(&mut self) {
        self.lower_ref("an activity");
        self.expect_word("as");
        if !self.eat_word("fail") {
            self.construct_or_missing("`Happened { result: … }`, `NotHappened` or `fail`");
        }
    }

    /// `check ::= "at" path | "path" UNAME ("->" UNAME)* | … | "end" expr | "fail" construct | "data" LNAME "==" expr | …`
    fn check(&mut self) {
        if self.eat_word("at") {
            self.path();
        } else if self.eat_word("path") {
            self.upper_ref("a state");
            while self.eat(SyntaxKind::Arrow) {
                self.upper_ref("a state");
            }
        } else if self.eat_word("calls") || self.eat_word("attempts") {
            self.lower_ref("an activity");
            self.expect(SyntaxKind::EqEq, "`==`");
            self.integer("a number");
        } else if self.eat_word("end") || self.eat_word("emits") {
            self.expr();
        } else if self.eat_word("fail") {
            self.construct_or_missing("an error");
        } else if self.eat_word("cancelled") {
            // Nothing more to say.
        } else if self.eat_word("data") {
            self.lower_ref("a data field");
            self.expect(SyntaxKind::EqEq, "`==`");
            self.expr();
        } else if self.eat_word("waiting") {
            self.lower_ref("what it waits for");
        } else if self.eat_word("asked") {
            self.string_or_missing("the question in quotes");
        } else if self.eat_word("refused") {
            self.lower_ref("why it was refused");
        } else {
            self.missing(
                "`at`, `path`, `calls`, `attempts`, `end`, `fail`, `cancelled`, `emits`, `data`, `asked`, `waiting` or `refused`",
            );
        }
    }

    /// `path ::= UNAME ("/" UNAME "." UNAME)*`
    fn path(&mut self) {
        self.node(SyntaxKind::Path, |p| {
            p.upper_ref("a state");
            while p.eat(SyntaxKind::Slash) {
                p.upper_ref("a flow");
                p.expect(SyntaxKind::Dot, "`.` and a state");
                p.upper_ref("a state");
            }
        });
    }
}
