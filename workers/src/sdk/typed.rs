//! Activities made of async functions: their types give the schemas, check the input and write the result.
//!
//! Leaves everything that an attempt can say to its [`TaskContext`]. Invariant: the function sees no input that does not fit its type.

use std::marker::PhantomData;

use outlast_protocol::worker::Offer;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::activity::{Activity, Done, Failure};
use super::context::TaskContext;
use crate::Json;

/// An activity made of a function; see [`activity`].
pub struct Typed<I, O, F> {
    offer: Offer,
    function: F,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O, F> std::fmt::Debug for Typed<I, O, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Typed").field(&self.offer.name).finish()
    }
}

/// Makes an activity of a function. `I` has a field for each parameter that the flow declares; `O` is what the flow gets.
pub fn activity<I, O, F, R>(name: &str, function: F) -> Typed<I, O, F>
where
    I: JsonSchema,
    O: JsonSchema,
    F: Fn(I, TaskContext) -> R,
    R: Future<Output = Result<O, Failure>>,
{
    let input = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let output = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let offer = Offer {
        name: name.to_owned(),
        input: input.into_root_schema_for::<I>().to_value(),
        output: output.into_root_schema_for::<O>().to_value(),
        effect: String::new(),
    };
    Typed { offer, function, types: PhantomData }
}

impl<I, O, F> Typed<I, O, F> {
    /// The strongest promise that the function keeps: `pure` may run again at will, `idempotent` again with the same
    /// [`TaskContext::key`], `once` must not. If not called, it serves whatever class a flow declares.
    #[must_use]
    pub fn effect(mut self, effect: &str) -> Typed<I, O, F> {
        effect.clone_into(&mut self.offer.effect);
        self
    }
}

#[async_trait::async_trait]
impl<I, O, F, R> Activity for Typed<I, O, F>
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
    F: Fn(I, TaskContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Failure>> + Send,
{
    fn offer(&self) -> Offer {
        self.offer.clone()
    }

    async fn run(&self, task: TaskContext) -> Result<Done, Failure> {
        let input = I::deserialize(task.input());
        let input = input.map_err(|error| Failure::bad_input(format!("{}: {error}", self.offer.name)))?;
        let output = (self.function)(input, task).await?;
        let value: Result<Json, _> = serde_json::to_value(output);
        // For `once` a failure says that it did not happen; here it has, so the type must be mended, not the task.
        let value =
            value.map_err(|error| Failure::new("BadResult", format!("{}: {error}", self.offer.name)))?;
        Ok(Done::new(value))
    }
}

#[cfg(test)]
mod tests {
    use outlast_protocol::worker::Task;
    use serde_json::json;

    use super::*;

    #[derive(serde::Deserialize, JsonSchema)]
    struct Order {
        item: String,
        count: Option<u32>,
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "type")]
    enum Ordered {
        Placed { number: String },
    }

    async fn order(order: Order, task: TaskContext) -> Result<Ordered, Failure> {
        Ok(Ordered::Placed { number: format!("{}-{}-{}", task.key(), order.item, order.count.unwrap_or(1)) })
    }

    #[tokio::test]
    async fn types_give_schemas_and_check_what_comes() {
        let order = activity("order", order).effect("idempotent");
        let offer = order.offer();
        assert_eq!((offer.name.as_str(), offer.effect.as_str()), ("order", "idempotent"));
        assert_eq!(offer.input["properties"]["item"]["type"], "string");
        assert_eq!(offer.input["required"], json!(["item"]));
        assert!(offer.output.to_string().contains("Placed"), "{}", offer.output);
        let run =
            |input| order.run(TaskContext::alone(Task { input, key: "k".to_owned(), ..Task::default() }));
        let done = run(json!({"item": "tea", "count": null})).await.unwrap();
        assert_eq!(done.value, json!({"type": "Placed", "number": "k-tea-1"}));
        let failure = run(json!({"count": 2})).await.unwrap_err();
        assert_eq!(failure.kind, "BadInput");
        assert!(failure.text.contains("order: missing field `item`"), "{failure}");
    }
}
