"""Generation: both decoders and the gradient pass must agree on every token and probability."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")

from clew.agents.graph_r1_protocol import GraphR1Protocol  # noqa: E402
from clew.errors import ConfigError  # noqa: E402
from clew.train import toy  # noqa: E402
from clew.train.core.chat_tokens import ChatTokenizer  # noqa: E402
from clew.train.core.environment import Environment  # noqa: E402
from clew.train.core.rollout import Rollout, RolloutLimits, sample_tokens  # noqa: E402
from clew.train.decode.fast_decoder import FastDecoder  # noqa: E402
from clew.train.decode.plain_decoder import PlainDecoder  # noqa: E402
from clew.train.learn.policy import Lora, Policy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
PROTOCOL = GraphR1Protocol(turns=2, brief=True)
LIMITS = RolloutLimits(length=96, step=8, reply=20, tokens_per_round=3)


@pytest.fixture(scope="module")
def policy():
    made = Policy.from_model(toy.make_model(), 0, Lora(rank=4, alpha=8), cells=2048)
    torch.manual_seed(3)
    for name, parameter in made.trainable_parameters().items():
        if "lora_B" in name:  # an adapter that does something
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def _rollout(policy, decoder, limits=LIMITS):
    chat_tokenizer = ChatTokenizer(toy.make_tokenizer(), PROTOCOL)
    return Rollout(
        decoder(policy.model), Environment(toy.make_retriever(), PROTOCOL), chat_tokenizer, limits
    )


def test_both_decoders_and_the_gradient_pass_agree(policy):
    questions = [task.question for task in toy.make_tasks()]
    plain, _ = _rollout(policy, PlainDecoder)(questions, seed=5)
    fast, timing = _rollout(policy, FastDecoder)(questions, seed=5)
    again = policy.score_trajectories(fast)
    assert timing.tokens == sum(one.generated_count for one in fast)
    for one, other, logprobs in zip(plain, fast, again, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.loss_mask.tolist() == other.loss_mask.tolist()
        assert one.episode == other.episode
        assert np.abs(one.logprobs - other.logprobs).max() < 1e-5
        assert np.abs(other.logprobs[other.loss_mask == 1] - logprobs).max() < 1e-5
    assert len({one.episode.asked for one in fast} | {len(one) for one in fast}) > 2


def test_small_batches_and_another_patience_change_nothing_when_greedy(policy):
    questions = [task.question for task in toy.make_tasks()][:7]
    whole, _ = _rollout(policy, FastDecoder)(questions, temperature=0.0)
    hasty = RolloutLimits(length=96, step=8, reply=20, tokens_per_round=1)
    alone = _rollout(policy, FastDecoder, hasty)
    for question, one in zip(questions, whole, strict=True):
        (other,), _ = alone([question], temperature=0.0)
        assert one.ids.tolist() == other.ids.tolist()


def test_the_same_seed_gives_the_same_episodes(policy):
    questions = ["what is in box3"] * 6
    first, _ = _rollout(policy, FastDecoder)(questions, seed=1)
    same, _ = _rollout(policy, FastDecoder)(questions, seed=1)
    other, _ = _rollout(policy, FastDecoder)(questions, seed=2)
    assert [one.ids.tolist() for one in first] == [one.ids.tolist() for one in same]
    assert [one.ids.tolist() for one in first] != [one.ids.tolist() for one in other]


def test_limits_hold_and_cut_replies_keep_their_frame(policy):
    limits = RolloutLimits(length=64, step=6, reply=14, tokens_per_round=4)
    played, _ = _rollout(policy, FastDecoder, limits)(["what is in box3"] * 8, seed=4)
    for one in played:
        assert len(one) <= limits.length
        runs = np.diff(np.flatnonzero(np.diff(np.r_[0, one.loss_mask, 0])))[::2]
        assert runs.max() <= limits.step
        gaps = np.diff(np.flatnonzero(np.diff(np.r_[0, one.loss_mask, 0])))[1::2]
        assert len(gaps) == 0 or gaps.max() <= limits.reply


def test_a_reply_is_cut_inside_and_closed():
    chat_tokenizer = ChatTokenizer(toy.make_tokenizer(), PROTOCOL)
    text = "<knowledge> " + "box3 " * 40 + "</knowledge> No queries are left."
    ids = chat_tokenizer.encode_reply(text, 0, 16)
    shown = chat_tokenizer.tokenizer.decode(ids)
    assert len(ids) == 16
    assert shown.endswith("</knowledge> No queries are left. <|end|> <|assistant|>")
    ended = chat_tokenizer.encode_reply("box3", chat_tokenizer.end_id, 16)
    assert ended == chat_tokenizer.encode_reply("box3", 0, 16)[1:]


def test_refresh_takes_in_what_training_changed(policy):
    decoder = FastDecoder(policy.model)
    before = decoder.prefill([[8, 13, 14]], 32).clone()
    changed = next(p for n, p in policy.trainable_parameters().items() if "lora_B" in n)
    with torch.no_grad():
        kept = changed.clone()
        changed.add_(0.5)
    assert torch.equal(decoder.prefill([[8, 13, 14]], 32), before)
    decoder.refresh()
    after = decoder.prefill([[8, 13, 14]], 32)
    assert not torch.allclose(after, before)
    assert torch.allclose(after, PlainDecoder(policy.model).prefill([[8, 13, 14]], 32), atol=1e-5)
    with torch.no_grad():
        changed.copy_(kept)


def test_draws_follow_the_probabilities():
    logits = torch.log(torch.tensor([[0.7, 0.2, 0.1]])).repeat(4000, 1)
    tokens, logprobs = sample_tokens(logits, 1.0, torch.Generator().manual_seed(0))
    share = np.bincount(tokens.numpy(), minlength=3) / 4000
    assert np.abs(share - [0.7, 0.2, 0.1]).max() < 0.03
    assert float(logprobs[0]) == pytest.approx(np.log([0.7, 0.2, 0.1][tokens[0]]), abs=1e-6)
    greedy, _ = sample_tokens(logits, 0.0, None)
    assert set(greedy.tolist()) == {0}


def test_models_that_cannot_train_are_named():
    bare = toy.make_tokenizer()
    bare.chat_template = None
    with pytest.raises(ConfigError, match="no chat template"):
        ChatTokenizer(bare, PROTOCOL)
    upper = toy.make_tokenizer()
    upper.chat_template = (
        "{% for m in messages %}{{ m.content | upper | replace('S', '') }}{% endfor %}"
    )
    with pytest.raises(ConfigError, match="changes messages"):
        ChatTokenizer(upper, PROTOCOL)
    model = toy.make_model()
    model.config.model_type = "mamba"
    with pytest.raises(ConfigError, match='decoder = "plain"'):
        FastDecoder(model)


def test_a_model_that_makes_activations_again_is_generated_from_the_same(policy):
    questions = [task.question for task in toy.make_tasks()][:5]
    plain, _ = _rollout(policy, PlainDecoder)(questions, seed=5)
    policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    policy.model.train()
    try:
        again, _ = _rollout(policy, PlainDecoder)(questions, seed=5)
        assert policy.model.training  # it is left as it was found
    finally:
        policy.model.gradient_checkpointing_disable()
        policy.model.eval()
    assert [one.ids.tolist() for one in again] == [one.ids.tolist() for one in plain]
    assert policy.score_trajectories(again)[0] == pytest.approx(
        again[0].logprobs[again[0].loss_mask == 1], abs=1e-5
    )


def test_no_dropout_is_left_where_activations_are_made_again():
    model = toy.make_model(family="Llama")
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    Policy.from_model(model, 0, Lora(4, 8), checkpointing=True)
    assert {layer.self_attn.attention_dropout for layer in model.model.layers} == {0.0}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ m.content.split('</think>')[-1] }}", "drop earlier thoughts"),
        ("{{ m.content }}{% if loop.last %}<think>\n{% endif %}", "opens <think> itself"),
    ],
)
def test_templates_that_handle_thoughts_themselves_are_refused(template, told):
    tokenizer = toy.make_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}" + template + "{% endfor %}"
    with pytest.raises(ConfigError, match=told):
        ChatTokenizer(tokenizer, PROTOCOL)


def test_a_tokenizer_without_an_end_is_refused():
    tokenizer = toy.make_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(ConfigError, match="eos_token"):
        ChatTokenizer(tokenizer, PROTOCOL)


def test_a_window_that_a_model_only_names_is_no_sliding_window():
    def fits(**more):
        config = toy.make_model(family="Llama").config
        for name, value in more.items():
            setattr(config, name, value)
        return config

    from clew.train.decode.fast_weights import read_shape

    assert read_shape(fits(sliding_window=64, use_sliding_window=False)).heads
    assert read_shape(fits(sliding_window=None)).heads
    with pytest.raises(ConfigError, match="sliding windows"):
        read_shape(fits(sliding_window=64))
