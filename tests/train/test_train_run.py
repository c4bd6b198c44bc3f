"""A run put together on a tiny model: what is loaded, left out, refused, and told to its server."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")

from clew.errors import ConfigError, InputError  # noqa: E402
from clew.llm.chat import Message, Request  # noqa: E402
from clew.llm.local_chat import TransformersChat  # noqa: E402
from clew.llm.trained_model import TrainedConfig, read_trained_config  # noqa: E402
from clew.train import toy  # noqa: E402
from clew.train.core.settings import TrainSettings  # noqa: E402
from clew.train.decode.fast_decoder import FastDecoder  # noqa: E402
from clew.train.learn.policy import Lora, Policy, check_trainable, load_model  # noqa: E402
from clew.train.questions import Task  # noqa: E402
from clew.train.run import Job, assemble_training, train  # noqa: E402
from clew.train.run_folder import merge_adapter  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = TrainSettings(
    **{"steps": 1, "questions": 2, "group": 2, "lr": 1e-2, "lora_rank": 4, "turns": 1},
    **{"brief": True, "length": 64, "step_tokens": 12, "reply_tokens": 24, "dev": 0},
)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return _saved(tmp_path / "tiny", 1)


def _saved(folder: Path, seed: int) -> Path:
    toy.make_model(seed, family="Llama").save_pretrained(folder)
    toy.make_tokenizer().save_pretrained(folder)
    return folder


def _job(tiny: Path, tasks=None, **changed):
    settings = TrainSettings(**{**vars(SETTINGS), **changed.pop("settings", {})})
    given = {"recipe": "graph-r1", "k": 3, "characters": 96, "retrieve": toy.make_retriever()}
    out = changed.pop("out", tiny.parent / "run")
    return Job(str(tiny), out, tasks or toy.make_tasks(), settings, **{**given, **changed})


def _short(episode, golds) -> float:
    """A reward that differs within every group."""
    return -sum(len(move.text) + len(move.think) for move in episode.moves) - len(episode.moves)


def _share(before, after) -> float:
    changed = sum(int((one != after[name]).sum()) for name, one in before.items())
    return changed / sum(one.numel() for one in before.values())


def test_a_whole_model_is_held_in_32_bits_so_that_small_steps_count(tiny) -> None:
    shares = {}
    for whole in (False, True):
        model, _ = load_model(tiny, dtype="bfloat16", whole=whole)
        policy = Policy.from_model(model, 0, Lora(rank=0))
        before = {name: p.detach().clone() for name, p in policy.trainable_parameters().items()}
        optimizer = torch.optim.AdamW(
            policy.trainable_parameters().values(), lr=5e-7, weight_decay=0.0
        )
        for _ in range(3):
            for parameter in policy.trainable_parameters().values():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
        shares[whole] = _share(before, policy.trainable_parameters())
    assert shares[True] > 0.9 > 0.1 > shares[False]


def test_a_full_run_at_the_default_rate_changes_nearly_all_weights(tiny) -> None:
    started = {name: p.clone() for name, p in toy.make_model(1, family="Llama").named_parameters()}
    train(_job(tiny, settings={"lora_rank": 0, "lr": 5e-7, "steps": 2, "seed": 3}, reward=_short))
    model, _ = load_model(tiny.parent / "run" / "model")
    now = dict(model.named_parameters())
    seen = {n: p for n, p in started.items() if "embed" not in n}  # not every word is used
    assert _share(seen, now) > 0.9


def test_the_decoder_keeps_16_bit_copies_and_renews_them_all() -> None:
    policy = Policy.from_model(toy.make_model(1), 0, Lora(rank=0))
    short = FastDecoder(policy.model, dtype=torch.bfloat16)
    prompt = [[1, 2, 3, 4, 5]]
    first = short.prefill(prompt, 32).float()
    assert short.keys[0].dtype == torch.bfloat16
    assert torch.allclose(first, FastDecoder(policy.model).prefill(prompt, 32), atol=0.1)
    for name in ("model.norm.weight", "model.embed_tokens.weight", "model.layers.0"):
        with torch.no_grad():
            for found, parameter in policy.model.named_parameters():
                if found.startswith(name):
                    parameter.mul_(1.5)
        held = short.prefill(prompt, 32).float()
        short.refresh()
        renewed = short.prefill(prompt, 32).float()
        assert torch.equal(held, first) and not torch.equal(renewed, first)
        first = renewed


def test_a_question_without_room_is_left_out_and_said(tiny) -> None:
    long = [Task(f"long{n}", "what is in " * 40, ("x",)) for n in range(3)]
    said: list[str] = []
    training = assemble_training(_job(tiny, [*toy.make_tasks(), *long]), said.append)
    assert len(training.train) == len(toy.make_tasks())
    assert any("3 questions are skipped" in line for line in said)
    with pytest.raises(ConfigError, match="no prompt is short enough"):
        assemble_training(_job(tiny, long, out=tiny.parent / "other"))


def test_a_knowledge_base_that_cannot_answer_is_told_before_a_model_is_loaded(tiny) -> None:
    async def lacking(queries):
        raise InputError("this recipe walks on entities, and there are none")

    with pytest.raises(InputError, match="walks on entities"):
        assemble_training(_job(tiny.parent / "no-such-model", retrieve=lacking))


def test_another_model_does_not_go_on_with_the_run(tiny) -> None:
    train(_job(tiny))
    _saved(tiny.parent / "second", 2)
    with pytest.raises(ConfigError, match="another configuration .*model was .*tiny, is .*second"):
        train(_job(tiny.parent / "second"))
    assert train(_job(tiny, settings={"steps": 2}))["steps"] == 2


def _said(folder: Path | str, words: str = "what is in box1 of room2") -> str:
    request = Request((Message("user", words),), max_tokens=12)
    return asyncio.run(TransformersChat(str(folder))(request)).text


def test_what_is_served_is_drawn_as_it_was_in_training(tiny) -> None:
    plain = [_said(tiny, f"what is in {box}") for box in toy.BOXES]
    penalty = {"repetition_penalty": 5.0, "top_k": 1, "eos_token_id": 3, "max_new_tokens": 2}
    (tiny / "generation_config.json").write_text(json.dumps(penalty))
    assert [_said(tiny, f"what is in {box}") for box in toy.BOXES] == plain
    assert max(map(len, plain)) > 0


def test_a_reply_ends_at_a_stop_sequence_and_leaves_it_out(tiny) -> None:
    words = _said(tiny).split()
    request = Request(
        (Message("user", "what is in box1 of room2"),), max_tokens=12, stop=(words[-1],)
    )
    reply = asyncio.run(TransformersChat(str(tiny))(request))
    assert reply.text.split() == words[: words.index(words[-1])]
    assert reply.usage.completion_tokens == words.index(words[-1]) + 1


def test_a_run_named_by_a_relative_base_is_served_from_anywhere(tiny, monkeypatch) -> None:
    monkeypatch.chdir(tiny.parent)
    train(
        Job(
            "tiny", Path("run"), toy.make_tasks(), SETTINGS, toy.make_retriever(), recipe="graph-r1"
        )
    )
    out = tiny.parent / "run"
    (tiny.parent / "elsewhere").mkdir()
    monkeypatch.chdir(tiny.parent / "elsewhere")
    assert isinstance(_said(out), str)
    assert read_trained_config(out) == TrainedConfig(
        "graph-r1", turns=1, brief=True, step_tokens=12
    )
    merge_adapter(out, tiny.parent / "whole")
    assert read_trained_config(tiny.parent / "whole") == read_trained_config(out)
    os.rename(tiny, tiny.parent / "gone")
    with pytest.raises(ConfigError, match="the base of the adapter .* cannot be loaded"):
        _said(out)


@pytest.mark.parametrize("rank", [0, 4])
def test_a_model_of_another_family_is_generated_by_transformers_and_trained(tmp_path, rank) -> None:
    tokenizer = toy.make_tokenizer()
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=128
    )
    folder = tmp_path / "gpt2"
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    said: list[str] = []
    job = _job(folder, settings={"lora_rank": rank, "old": "recompute"})
    assert train(job, said.append)["steps"] == 1
    assert any("using the plain decoder" in line for line in said)
    row = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert abs(row["drift"]) < 1e-4 and isinstance(_said(tmp_path / "run"), str)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Gemma2", {"head_dim": 8, "final_logit_softcapping": 30.0}),
        ("Granite", {"logits_scaling": 8.0}),
        ("Cohere", {"logit_scale": 0.0625}),
    ],
)
def test_scores_that_are_altered_after_the_head_are_refused_by_name(kind, more) -> None:
    shape = {
        **{"vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1},
        **{"num_attention_heads": 2, "num_key_value_heads": 2, "pad_token_id": 0},
        **{"bos_token_id": 1, "eos_token_id": 2},
    }
    config = getattr(transformers, f"{kind}Config")(**shape, **more)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    with pytest.raises(ConfigError, match=f"a {kind.lower()} model cannot be trained"):
        check_trainable(model)


def test_later_turns_read_only_what_is_new_and_are_answered_the_same(tiny, monkeypatch) -> None:
    chat, read, models = TransformersChat(str(tiny)), [], []
    load = transformers.AutoModelForCausalLM.from_pretrained

    def load_and_keep(*args, **options):
        models.append(load(*args, **options))
        return models[-1]

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", load_and_keep)
    turns, replies = [Message("user", "what is in box1 of room2")], []
    asyncio.run(chat(Request(tuple(turns), max_tokens=12)))
    embedding = models[0].get_input_embeddings()
    embedding.register_forward_hook(lambda module, given, made: read.append(given[0].shape[1]))
    for box in toy.BOXES:
        request = Request(tuple(turns), max_tokens=12)
        reply = asyncio.run(chat(request))
        replies.append(reply)
        assert reply == replace(
            asyncio.run(TransformersChat(str(tiny))(request)), model=reply.model
        )
        turns += [Message("assistant", reply.text), Message("user", f"what is in {box}")]
    assert len({reply.text for reply in replies}) > 1
    assert read[0] == 1  # the same request again
    whole = sum(one.usage.prompt_tokens + one.usage.completion_tokens for one in replies)
    assert sum(read) < whole / 2


def test_another_question_shares_only_what_it_begins_with(tiny) -> None:
    chat = TransformersChat(str(tiny))
    for words in ("what is in box1", "what is in box2", "room2", "what is in box1", "room2 box1"):
        request = Request((Message("user", words),), max_tokens=12)
        assert asyncio.run(chat(request)).text == _said(tiny, words)


def test_folders_that_are_none_are_told(tiny) -> None:
    train(_job(tiny))
    with pytest.raises(ConfigError, match="is a file; name a new folder"):
        merge_adapter(tiny.parent / "run", tiny / "config.json")
    (tiny.parent / "empty").mkdir()
    with pytest.raises(ConfigError, match="has no config.json"):
        load_model(tiny.parent / "empty")


def test_any_seed_will_do(tiny) -> None:
    assert train(_job(tiny, settings={"seed": 2**60}))["steps"] == 1
