//! The calls about schedules.

use std::time::Duration;

use hyper::Method;
use outlast_kernel::Json;
use outlast_protocol::requests::List;
use outlast_protocol::run::RunView;
use outlast_protocol::schedule::{KeptSchedule, Schedule, ScheduleView};
use serde_json::json;

use super::{Called, Client, encode};
use crate::limits::ANSWER_MS_MAX;

impl Client {
    /// Keeps a schedule; the same definition again changes nothing.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::Invalid`], [`outlast_protocol::Code::NotFound`] (flow).
    pub async fn put_schedule(&self, name: &str, schedule: &Schedule) -> Called<KeptSchedule> {
        self.call(Method::PUT, path(name, ""), Some(schedule), Duration::from_millis(ANSWER_MS_MAX)).await
    }

    /// Returns all schedules.
    ///
    /// # Errors
    /// As every call: see [`super::ClientError`].
    pub async fn schedules(&self) -> Called<List<ScheduleView>> {
        self.get("/v1/schedules".to_owned()).await
    }

    /// Returns a schedule.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn schedule(&self, name: &str) -> Called<ScheduleView> {
        self.get(path(name, "")).await
    }

    /// Removes a schedule.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn remove_schedule(&self, name: &str) -> Called<Json> {
        self.call::<(), _>(Method::DELETE, path(name, ""), None, Duration::from_millis(ANSWER_MS_MAX)).await
    }

    /// Pauses a schedule.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn pause_schedule(&self, name: &str) -> Called<ScheduleView> {
        self.post(path(name, "/pause"), &json!({})).await
    }

    /// Lets a schedule go on.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`].
    pub async fn resume_schedule(&self, name: &str) -> Called<ScheduleView> {
        self.post(path(name, "/resume"), &json!({})).await
    }

    /// Starts a run of a schedule now.
    ///
    /// # Errors
    /// [`outlast_protocol::Code::NotFound`], and as a start.
    pub async fn run_schedule_now(&self, name: &str) -> Called<RunView> {
        self.post(path(name, "/run-now"), &json!({})).await
    }
}

fn path(name: &str, rest: &str) -> String {
    format!("/v1/schedules/{}{rest}", encode(name))
}
