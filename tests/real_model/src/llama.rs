//! The network: a Llama, one pass for each piece of a conversation.
//!
//! Candle's own Llama comes with a hundred other networks and compiles for many minutes; this is the one that is needed. Leaves words
//! to [`super::model`]. Invariant: the weights never change; all that a conversation leaves behind is in its [`Memory`].
//!
//! Source: the parameters and tensors that GGUF files name for the architecture `llama`.

use std::io::{Read, Seek};

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{D, Device, Error, Module as _, Result, Tensor};
use candle_nn::Linear;
use candle_nn::ops::{rms_norm, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use crate::limits::CONTEXT_TOKENS_MAX;

/// See the module.
#[derive(Debug)]
pub(crate) struct Llama {
    embeddings: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    /// From the last layer to how likely each token is.
    output: Linear,
    heads: usize,
    /// Several heads share keys and values.
    shared_heads: usize,
    head_width: usize,
    epsilon: f32,
    /// The turn of each position.
    turns: (Tensor, Tensor),
}

#[derive(Debug)]
struct Layer {
    attention_norm: Tensor,
    query: Linear,
    key: Linear,
    value: Linear,
    attention: Linear,
    feed_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// What was computed for the tokens so far: keys and values of each layer.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    layers: Vec<(Tensor, Tensor)>,
    tokens: usize,
}

impl Llama {
    /// Reads the weights.
    pub(crate) fn read(content: &Content, file: &mut (impl Read + Seek)) -> Result<Llama> {
        let value = |name: &str| {
            let missing = || Error::msg(format!("the file does not say {name}"));
            content.metadata.get(name).ok_or_else(missing)
        };
        let count = |name: &str| value(name).and_then(Value::to_u32).map(|count| count as usize);
        let heads = count("llama.attention.head_count")?;
        let head_width = count("llama.embedding_length")? / heads;
        let embeddings = plain(content, file, "token_embd.weight")?;
        let layers = (0..count("llama.block_count")?).map(|at| Layer::read(content, file, at));
        Ok(Llama {
            layers: layers.collect::<Result<_>>()?,
            norm: plain(content, file, "output_norm.weight")?,
            embeddings: embeddings.clone(),
            // Words are written with the table with which they are read.
            output: Linear::new(embeddings, None),
            heads,
            shared_heads: count("llama.attention.head_count_kv")?,
            head_width,
            epsilon: value("llama.attention.layer_norm_rms_epsilon")?.to_f32()?,
            turns: turns(head_width, value("llama.rope.freq_base")?.to_f32()?)?,
        })
    }

    /// Takes in tokens, and returns the likeliest one behind them.
    ///
    /// # Errors
    /// If they are more than the context has room for.
    pub(crate) fn next(&self, memory: &mut Memory, tokens: &[u32]) -> Result<u32> {
        let (from, count) = (memory.tokens, tokens.len());
        let turn = |table: &Tensor| table.narrow(0, from, count);
        let turns = (turn(&self.turns.0)?, turn(&self.turns.1)?);
        let future = future(from, count)?;
        let mut x = self.embeddings.index_select(&Tensor::new(tokens, &Device::Cpu)?, 0)?.unsqueeze(0)?;
        for (at, layer) in self.layers.iter().enumerate() {
            let before = memory.layers.get(at);
            let normed = rms_norm(&x, &layer.attention_norm, self.epsilon)?;
            let (attended, after) = self.attend(layer, &normed, &turns, &future, before)?;
            match memory.layers.get_mut(at) {
                Some(kept) => *kept = after,
                None => memory.layers.push(after),
            }
            x = (x + attended)?;
            let fed = layer.feed(&rms_norm(&x, &layer.feed_norm, self.epsilon)?)?;
            x = (x + fed)?;
        }
        memory.tokens += count;
        let last = rms_norm(&x.narrow(1, count - 1, 1)?.contiguous()?, &self.norm, self.epsilon)?;
        self.output.forward(&last)?.flatten_all()?.argmax(D::Minus1)?.to_scalar()
    }

    /// What each token makes of those before it; and keys and values of all so far.
    fn attend(
        &self,
        layer: &Layer,
        x: &Tensor,
        turns: &(Tensor, Tensor),
        future: &Tensor,
        before: Option<&(Tensor, Tensor)>,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let (_, count, width) = x.dims3()?;
        let by_head = |x: Tensor, heads: usize| {
            x.reshape((1, count, heads, self.head_width))?.transpose(1, 2)?.contiguous()
        };
        let query = rope_i(&by_head(layer.query.forward(x)?, self.heads)?, &turns.0, &turns.1)?;
        let key = rope_i(&by_head(layer.key.forward(x)?, self.shared_heads)?, &turns.0, &turns.1)?;
        let value = by_head(layer.value.forward(x)?, self.shared_heads)?;
        let (key, value) = match before {
            None => (key, value),
            Some((keys, values)) => (Tensor::cat(&[keys, &key], 2)?, Tensor::cat(&[values, &value], 2)?),
        };
        let all = key.dim(2)?;
        // Heads that share keys and values stand behind each other, so they are rows of one product.
        let rows = self.heads / self.shared_heads * count;
        let query = query.reshape((1, self.shared_heads, rows, self.head_width))?;
        let weight = (query.matmul(&key.t()?)? / (self.head_width as f64).sqrt())?;
        let weight = weight.reshape((1, self.heads, count, all))?.broadcast_add(future)?;
        let weight = softmax_last_dim(&weight)?.reshape((1, self.shared_heads, rows, all))?;
        let seen = weight.matmul(&value)?.reshape((1, self.heads, count, self.head_width))?;
        let seen = seen.transpose(1, 2)?.reshape((1, count, width))?;
        Ok((layer.attention.forward(&seen)?, (key, value)))
    }
}

impl Layer {
    fn read(content: &Content, file: &mut (impl Read + Seek), at: usize) -> Result<Layer> {
        let name = |part: &str| format!("blk.{at}.{part}.weight");
        let mut matrix = |part: &str| Ok::<_, Error>(Linear::new(plain(content, file, &name(part))?, None));
        Ok(Layer {
            query: matrix("attn_q")?,
            key: matrix("attn_k")?,
            value: matrix("attn_v")?,
            attention: matrix("attn_output")?,
            gate: matrix("ffn_gate")?,
            up: matrix("ffn_up")?,
            down: matrix("ffn_down")?,
            attention_norm: plain(content, file, &name("attn_norm"))?,
            feed_norm: plain(content, file, &name("ffn_norm"))?,
        })
    }

    fn feed(&self, x: &Tensor) -> Result<Tensor> {
        self.down.forward(&(self.gate.forward(x)?.silu()? * self.up.forward(x)?)?)
    }
}

/// A tensor as plain numbers. That takes 540 MB; but Candle 0.11.1 multiplies this file's kind (`Q4_1`) slowly, and what the model said
/// with it was nonsense.
fn plain(content: &Content, file: &mut (impl Read + Seek), name: &str) -> Result<Tensor> {
    content.tensor(file, name, &Device::Cpu)?.dequantize(&Device::Cpu)
}

/// Cosine and sine of each position, for each pair of numbers of a head.
fn turns(head_width: usize, base: f32) -> Result<(Tensor, Tensor)> {
    let pairs = head_width / 2;
    let angle = |at: usize| (at / pairs) as f32 / base.powf((at % pairs * 2) as f32 / head_width as f32);
    let table = |of: fn(f32) -> f32| {
        let numbers: Vec<f32> = (0..CONTEXT_TOKENS_MAX * pairs).map(|at| of(angle(at))).collect();
        Tensor::from_vec(numbers, (CONTEXT_TOKENS_MAX, pairs), &Device::Cpu)
    };
    Ok((table(f32::cos)?, table(f32::sin)?))
}

/// Takes from each of `count` tokens behind `from` others what comes after it.
fn future(from: usize, count: usize) -> Result<Tensor> {
    let all = from + count;
    let hidden = |at: usize| if at % all > from + at / all { f32::NEG_INFINITY } else { 0.0 };
    Tensor::from_vec((0..count * all).map(hidden).collect(), (count, all), &Device::Cpu)
}
