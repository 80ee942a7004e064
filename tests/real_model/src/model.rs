//! The model: loaded from a GGUF file, with its vocabulary, and asked for one token after the other.
//!
//! Leaves requests to [`super::chat`] and the network to [`super::llama`]. Invariant: always the likeliest token, and no state that outlives an answer, so an answer
//! depends on its conversation alone.

use std::error::Error;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::tokenizer::TokenizerFromGguf as _;
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use crate::chat::Message;
use crate::limits::CONTEXT_TOKENS_MAX;
use crate::llama::{Llama, Memory};
use crate::record::End;

/// What can go wrong with files and tensors has many types; here it is only told.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// How SmolLM2 is spoken to. Source: `tokenizer.chat_template` of its file, which is compared with this.
const TEMPLATE: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
/// What the template says where the conversation does not.
const SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
/// The kind of tokens that are no text, in a GGUF file.
const CONTROL: i32 = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Model {
    llama: Llama,
    tokenizer: Tokenizer,
    /// Stands before each message.
    opening: u32,
    /// Stands behind each message.
    closing: u32,
    /// Tokens that are no text: after one of them the model has said all.
    controls: Vec<u32>,
}

impl Model {
    /// Loads the file.
    pub(crate) fn load(path: &Path) -> Result<Model, Fault> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let template = content.metadata.get("tokenizer.chat_template").map(Value::to_string).transpose()?;
        let pre = content.metadata.get("tokenizer.ggml.pre").map(Value::to_string).transpose()?;
        if template.is_none_or(|found| found != TEMPLATE) || pre.is_none_or(|found| found != "smollm") {
            return Err(
                "expected a model that is spoken to like SmolLM2-135M-Instruct: its template is another"
                    .into(),
            );
        }
        let mut tokenizer = Tokenizer::from_gguf(&content)?;
        // What the file calls `smollm`: digits one by one, no space in front.
        let pieces = vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()];
        tokenizer.with_pre_tokenizer(Some(Sequence::new(pieces)));
        // In what people write `<|im_end|>` is text like any other.
        tokenizer.set_encode_special_tokens(true);
        let token = |name: &str| tokenizer.token_to_id(name).ok_or(format!("there is no token {name}"));
        let (opening, closing) = (token("<|im_start|>")?, token("<|im_end|>")?);
        let controls = controls(&content)?;
        let llama = Llama::read(&content, &mut file)?;
        Ok(Model { llama, tokenizer, opening, closing, controls })
    }

    /// The tokens of a conversation, up to where the answer begins.
    pub(crate) fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, Fault> {
        let mut tokens = Vec::new();
        if messages.first().is_none_or(|first| first.role != "system") {
            self.add(&mut tokens, "system", SYSTEM)?;
        }
        for message in messages {
            self.add(&mut tokens, &message.role, &message.text)?;
        }
        tokens.push(self.opening);
        tokens.extend(self.encode("assistant\n")?);
        Ok(tokens)
    }

    /// Makes an answer, of so many tokens at most, and gives its text token by token; a token in the middle of a character has none yet.
    pub(crate) fn answer(
        &self,
        prompt: &[u32],
        tokens_max: usize,
        mut heard: impl FnMut(&str) -> ControlFlow<End>,
    ) -> Result<End, Fault> {
        let mut memory = Memory::default();
        let mut text = self.tokenizer.decode_stream(true);
        let mut next = prompt.to_vec();
        let room = CONTEXT_TOKENS_MAX.saturating_sub(prompt.len());
        for _ in 0..tokens_max.min(room) {
            let token = self.llama.next(&mut memory, &next)?;
            if self.controls.contains(&token) {
                return Ok(End::Stop);
            }
            if let ControlFlow::Break(end) = heard(&text.step(token)?.unwrap_or_default()) {
                return Ok(end);
            }
            next = vec![token];
        }
        Ok(End::Length)
    }

    fn add(&self, tokens: &mut Vec<u32>, role: &str, text: &str) -> Result<(), Fault> {
        tokens.push(self.opening);
        tokens.extend(self.encode(&format!("{role}\n{text}"))?);
        tokens.push(self.closing);
        tokens.extend(self.encode("\n")?);
        Ok(())
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, Fault> {
        Ok(self.tokenizer.encode(text, false)?.get_ids().to_vec())
    }
}

/// The tokens that are no text.
fn controls(content: &Content) -> Result<Vec<u32>, Fault> {
    let kinds = content.metadata.get("tokenizer.ggml.token_type").ok_or("the file has no kinds of tokens")?;
    let mut found = Vec::new();
    for (token, kind) in (0..).zip(kinds.to_vec()?) {
        if kind.to_i32()? == CONTROL {
            found.push(token);
        }
    }
    Ok(found)
}
