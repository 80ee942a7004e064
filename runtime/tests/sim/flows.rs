//! The flows that are simulated: one for each kind of work that a fault could hurt.

/// Every flow takes `x`, which tells its runs apart.
pub(crate) const FLOWS: &str = r#"
edition 1
error Busy
error Full { why: text }
retry Gently { on Busy, timeout up to 30 attempts wait 1s doubling to 8s }

activity look(x: int) -> int raises Busy within 1m in all 2h retry Gently queue "q" effect pure
activity put(x: int) -> int raises Busy within 1m in all 2h retry Gently queue "q" effect idempotent
activity pay(x: int) -> text within 10m queue "q" effect once verify paid
activity paid(x: int) -> Verdict<text> within 1m in all 2h queue "q" effect pure
activity wire(x: int) -> text within 10m queue "q" effect once
activity book(x: int) -> int within 1m in all 2h retry Gently queue "q" effect idempotent undo unbook
activity unbook(x: int, result: int?) -> int within 1m in all 1d retry Gently queue "q" effect idempotent

flow Chain(x: int) -> text version 1 {
  start Look
  state Look { do look(x) as y           on ok -> Put(y)     on problem -> end "not looked" }
  state Put(y: int) { do put(y) as z     on ok -> Pay(z)     on problem -> end "not put" }
  state Pay(z: int) { do pay(x) as t     on ok -> end t      on unknown, problem -> end "in doubt" }
}

flow Wire(x: int) -> text version 1 {
  start Send
  state Send { do wire(x) as t   on ok -> end t   on unknown -> Doubt   on problem -> end "not sent" }
  state Doubt {
    ask "Send {x} again?" to "owner" within 2m
    on approve         -> Send
    on reject, timeout -> end "left in doubt"
  }
}

flow Fan(x: int) -> list<int> version 1 {
  start All
  state All { each y in [x, x + 1, x + 2, x + 3] at most 2 as ys { do put(y) }   on ok -> end ys   on problem -> end [] }
}

flow Talk(x: int) -> text emits text version 1 {
  message Say { text: text }
  data log: text = ""
  start Hear
  state Hear {
    await Say, closed within 1d
    on Say { text: said }  set log = "{log} {said}"  emit said  -> Look
    on closed, timeout                                           -> end log
  }
  state Look { do look(x)   on ok -> Hear   on problem -> Hear }
}

saga flow Trip(x: int) -> int raises Full version 1 {
  on problem as p -> fail Full { why: p.text }
  start Act
  state Act {
    steps {
      a = do book(x)
      b = do book(x + 1)
    }
    on ok -> fail Full { why: "{a} {b}" }
  }
}

flow Parent(x: int) -> text version 1 {
  start Begin
  state Begin {
    spawn Chain(x) named "child-{x}" cancel as h
    on ok     -> Wait(h)
    on exists -> end "exists"
  }
  state Wait(h: handle<Chain>) {
    await ended(h) within 1d
    on ended   -> end "ended"
    on timeout -> end "late"
  }
}

flow Ask(x: int) -> text version 1 {
  start Ask
  state Ask {
    ask "Put {x}?" to "owner" within 2m
    on approve         -> Put
    on reject, timeout -> end "left"
  }
  state Put { do put(x) as y   on ok -> end "put"   on problem -> end "not put" }
}
"#;

/// The flows that runs are started of; a run's number says which.
pub(crate) const NAMES: [&str; 7] = ["Chain", "Wire", "Fan", "Talk", "Trip", "Parent", "Ask"];
