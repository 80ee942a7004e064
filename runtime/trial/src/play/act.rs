//! What the steps of a test do to the run.
//!
//! Invariant: what a run refuses fails the test, unless the next step expects it.

use outlast_dsl::machine::FunctionIx;
use outlast_dsl::test_case::{Choice as Chosen, Expectation, Reaction, StepKind, Verdict};
use outlast_kernel::Json;
use outlast_kernel::event::{Choice, LostWhy, Settlement};
use outlast_kernel::ids::OpId;
use outlast_kernel::input::{Input, Refusal};
use outlast_kernel::operation::{Operation, OperationKind, Phase, Question};

use super::drive::RANDOM;
use super::{Cause, Play, Until};
use crate::failure::Problem;
use crate::hands::Comes;
use crate::world::activity_of;

impl Play<'_> {
    fn value(&self, function: FunctionIx) -> Result<Json, Problem> {
        let value = self.world.values.call(function, self.world.now);
        value.map_err(|fault| Problem::new(format!("a value of this step has none: {fault}")))
    }

    fn text(&self, function: FunctionIx) -> Result<String, Problem> {
        Ok(self.value(function)?.as_str().unwrap_or_default().to_owned())
    }

    fn fields(&self, fields: &[(String, FunctionIx)]) -> Result<Json, Problem> {
        let mut object = serde_json::Map::new();
        for (name, function) in fields {
            object.insert(name.clone(), self.value(*function)?);
        }
        Ok(Json::Object(object))
    }

    pub(super) fn start(&mut self, args: &[(String, FunctionIx)]) -> Result<(), Problem> {
        self.world.start = Some((self.test.flow.clone(), self.fields(args)?));
        Ok(())
    }

    pub(super) fn allow(&mut self, pattern: FunctionIx) -> Result<(), Problem> {
        let pattern = self.text(pattern)?;
        if self.world.runs.is_empty() {
            let allow = &mut self.world.config.allow;
            *allow = [&allow[..], &[pattern]].concat().into();
            return Ok(());
        }
        self.act(Input::Grant { pattern })
    }

    pub(super) fn send(&mut self, name: &str, fields: &[(String, FunctionIx)]) -> Result<(), Problem> {
        let (id, value) = (Some(format!("step-{}", self.step)), self.fields(fields)?);
        self.act(Input::Message { id, name: name.to_owned(), value, from: "test".to_owned() })
    }

    /// Does something to the started run.
    pub(super) fn act(&mut self, input: Input) -> Result<(), Problem> {
        self.act_on(0, input)
    }

    fn act_on(&mut self, run: usize, input: Input) -> Result<(), Problem> {
        match self.world.runs[run].state.decide(&input, self.world.now, RANDOM) {
            Ok(kinds) => {
                let cause = Cause::Step(input);
                kinds.into_iter().try_for_each(|kind| self.append(run, kind, cause.clone()))
            }
            Err(refusal) => self.refused(&refusal),
        }
    }

    fn refused(&mut self, refusal: &Refusal) -> Result<(), Problem> {
        let code = code_of(refusal);
        let next = self.test.steps.get(self.step + 1).map(|step| &step.kind);
        if matches!(next, Some(StepKind::Expect(Expectation::Refused(_)))) {
            self.world.refused = Some((code, refusal.to_string()));
            return Ok(());
        }
        Err(Problem::new(format!("this is refused: {refusal}"))
            .found(self.world.whereabouts())
            .hint(format!("if that is meant, write `expect refused {code}` after this step")))
    }

    pub(super) fn answer(&mut self, reaction: &Reaction) -> Result<(), Problem> {
        let wanted = reaction.question.map(|text| self.text(text)).transpose()?;
        let role = reaction.by.map(|by| self.text(by)).transpose()?;
        let (run, op, by) = self.asked(wanted.as_deref(), role.as_deref())?;
        let input = Input::Answer {
            question: Some(op),
            choice: match reaction.choice {
                Chosen::Approve => Choice::Approve,
                Chosen::Reject => Choice::Reject,
                Chosen::Answer => Choice::Answer,
            },
            value: reaction.value.map(|value| self.value(value)).transpose()?,
            note: reaction.note.map(|note| self.text(note)).transpose()?.unwrap_or_default(),
            by,
            role,
            shown: None,
        };
        self.act_on(run, input)
    }

    /// Returns the question that an answer means, and who answers it: open ones first.
    fn asked(&self, wanted: Option<&str>, role: Option<&str>) -> Result<(usize, OpId, String), Problem> {
        let runs = self.world.runs.iter().enumerate();
        let open: Vec<(usize, OpId, &Question)> = runs
            .flat_map(|(at, run)| {
                run.state.operations().filter_map(move |op| Some((at, op.id, question_of(op)?)))
            })
            .collect();
        let texts = |open: &[(usize, OpId, &Question)]| {
            let texts: Vec<String> =
                open.iter().map(|(.., question)| format!("{:?}", question.text)).collect();
            if texts.is_empty() { self.world.whereabouts() } else { format!("asked is {}", texts.join(", ")) }
        };
        let fits = |question: &Question| wanted.is_none_or(|text| *text == question.text);
        match open.iter().find(|(.., question)| fits(question)) {
            Some((run, op, question)) if wanted.is_some() || open.len() == 1 => {
                return Ok((*run, *op, person(question, role)));
            }
            Some(_) => {
                return Err(Problem::new("several questions are open")
                    .found(texts(&open))
                    .hint("name the question"));
            }
            None => {}
        }
        let Some(text) = wanted else {
            return Err(Problem::new("no question is open").found(texts(&open)));
        };
        // One that is not open any more refuses the answer itself.
        let before = self.world.tally.asked.iter().rev().find(|(_, asked)| asked == text);
        match before {
            Some(((run, op), _)) => Ok((*run, *op, role.unwrap_or("someone").to_owned())),
            None => Err(Problem::new(format!("{text:?} is not asked")).found(texts(&open))),
        }
    }

    pub(super) fn settle_doubt(&mut self, activity: &str, verdict: &Verdict) -> Result<(), Problem> {
        let op = self.held(activity)?;
        let verdict = match verdict {
            Verdict::Fail => Settlement::Fail,
            Verdict::Value(value) => match self.value(*value)? {
                Json::Object(mut fields) if fields.get("type") == Some(&Json::from("Happened")) => {
                    Settlement::Happened(fields.remove("result").unwrap_or_default())
                }
                Json::Object(fields) if fields.get("type") == Some(&Json::from("NotHappened")) => {
                    Settlement::NotHappened
                }
                _ => {
                    return Err(Problem::new("a person must say something")
                        .expected("`Happened { result: … }`, `NotHappened` or `fail`"));
                }
            },
        };
        self.act(Input::Settle { op, verdict, by: "test".to_owned() })
    }

    pub(super) fn release(&mut self, activity: &str) -> Result<(), Problem> {
        let op = self.held(activity)?;
        self.act(Input::Release { op, by: "test".to_owned() })
    }

    /// Returns the operation of an activity that waits for a person.
    fn held(&self, activity: &str) -> Result<OpId, Problem> {
        let is_held = |op: &&Operation| {
            activity_of(op)
                .is_some_and(|call| call.activity == activity && matches!(call.phase, Phase::Held(_)))
        };
        let found = self.world.runs[0].state.operations().find(is_held).map(|op| op.id);
        found.ok_or_else(|| {
            Problem::new(format!("no call of `{activity}` waits for a person"))
                .found(self.world.whereabouts())
        })
    }

    pub(super) fn crash_at(&mut self, path: &str) -> Result<(), Problem> {
        if !self.settle(None, Until::At(path))? {
            self.world.unanswered()?;
            return Err(
                Problem::new(format!("the run does not come to `{path}`")).found(self.world.whereabouts())
            );
        }
        self.crash()
    }

    pub(super) fn lose_worker(&mut self) -> Result<(), Problem> {
        self.settle(None, Until::InHand)?;
        let lost: Vec<_> = self.world.hands.iter().filter(|hand| hand.is_out()).cloned().collect();
        if lost.is_empty() {
            self.world.unanswered()?;
            return Err(Problem::new("no worker has an attempt in hand here").found(self.world.whereabouts()));
        }
        for (at, hand) in lost.into_iter().enumerate() {
            if let Some(taken) = hand.taken.filter(|_| hand.comes != Comes::Lost) {
                self.world.stubs.give_back(taken);
            }
            let loss = Input::Lost { op: hand.op, attempt: hand.attempt, why: LostWhy::WorkerGone };
            self.cause(hand.run, &loss, &Cause::Loss(at))?;
            self.world.hands.retain(|other| (other.run, other.op) != (hand.run, hand.op));
        }
        Ok(())
    }
}

fn question_of(op: &Operation) -> Option<&Question> {
    match &op.kind {
        OperationKind::Question(question) => Some(question),
        OperationKind::Activity(_)
        | OperationKind::Timer
        | OperationKind::Await(_)
        | OperationKind::AwaitEnded { .. }
        | OperationKind::Spawn(_)
        | OperationKind::Child(_)
        | OperationKind::CancelChild(_)
        | OperationKind::TellParent(_) => None,
    }
}

/// Names who answers: each answer in a role is another person's.
fn person(question: &Question, role: Option<&str>) -> String {
    let agreed = |role: &str| question.agreed.iter().filter(|(_, known)| known == role).count();
    let wanted = |(count, role): &&(u32, String)| agreed(role) < *count as usize;
    let free = question.to.iter().find(wanted).map(|(_, role)| role.as_str());
    let name = role.or(free).unwrap_or("someone");
    match agreed(name) {
        0 => name.to_owned(),
        before => format!("{name} {}", before + 1),
    }
}

/// Returns the code with which a refusal is told on every surface.
fn code_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::RunEnded { .. } => "run_ended",
        Refusal::AlreadyEnding => "already_ending",
        Refusal::Superseded { .. } => "superseded",
        Refusal::Repeated
        | Refusal::MessageRepeated { .. }
        | Refusal::MessageConflict { .. }
        | Refusal::ShownDiffers { .. } => "conflict",
        Refusal::Invalid { .. } | Refusal::WhichQuestion { .. } => "invalid",
        Refusal::NotListening { .. } => "not_listening",
        Refusal::MailboxFull { .. } => "mailbox_full",
        Refusal::AlreadyDecided { .. } => "already_decided",
        Refusal::NotFound { .. } => "not_found",
        Refusal::WrongRole { .. } => "forbidden",
    }
}
