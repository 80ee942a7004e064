//! A saga with everything that has to be undone: a fan-out, a `once` step, a saga inside it.

use std::sync::LazyLock;

use outlast_dsl::machine::Machine;

pub(crate) const TRIP: &str = r#"
edition 1
error NotBooked
retry Patient { on problem up to 2 attempts wait 1s doubling to 10s }
activity hotel(days: int) -> text within 1m in all 10m effect idempotent undo cancel_hotel
activity cancel_hotel(days: int, result: text?) within 1m in all 1h retry Patient effect idempotent
activity charge(amount: int) -> text within 1m in all 10m effect once undo refund
activity refund(amount: int, result: text?) within 1m in all 1h retry Patient effect idempotent
saga flow Trip(days: int) -> text raises NotBooked {
  message Stop now
  start Book
  on Stop -> fail NotBooked
  state Book {
    each d in [1, 2, 3] at most 2 as rooms { do hotel(d) }
    on ok -> Pay
    on problem -> fail NotBooked
  }
  state Pay {
    do charge(days) as receipt
    on ok -> Inner
    on unknown -> fail NotBooked
    on problem -> fail NotBooked
  }
  state Inner {
    run Extra(days) within 20m as extra
    on ok -> Last
    on NotBooked, timeout, undo_failed -> fail NotBooked
  }
  state Last {
    do hotel(9)
    on ok -> end "done"
    on problem -> fail NotBooked
  }
}
saga flow Extra(days: int) -> text raises NotBooked {
  start A
  state A {
    do charge(days) as r
    on ok -> B
    on unknown, problem -> fail NotBooked
  }
  state B {
    do hotel(7) as r
    on ok -> end r
    on problem -> fail NotBooked
  }
}
"#;

pub(crate) fn trip() -> Machine {
    static COMPILED: LazyLock<Machine> = LazyLock::new(|| super::compiled(TRIP, "Trip"));
    COMPILED.clone()
}
