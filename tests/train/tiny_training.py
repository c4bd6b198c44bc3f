"""A training of a few seconds: the toy's words, a random model, a reward anyone can raise."""

import torch

from clew.agents.graph_r1_protocol import GraphR1Protocol
from clew.train import toy
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment
from clew.train.core.rollout import Rollout, RolloutLimits
from clew.train.core.settings import TrainSettings
from clew.train.decode.fast_decoder import FastDecoder
from clew.train.learn.policy import Lora, Policy
from clew.train.loop import Training

PROTOCOL = GraphR1Protocol(turns=1, brief=True)
SETTINGS = TrainSettings(
    steps=4, questions=4, group=3, lr=1e-2, lora_rank=0, turns=1, brief=True, length=64, cells=512
)


def brevity(episode, golds):
    """A reward that any model can raise at once: say little."""
    return -sum(len(move.text) + len(move.think) for move in episode.moves) / 10 - len(
        episode.moves
    )


def training(out, settings=SETTINGS, lora=0, **more):
    tokenizer = toy.make_tokenizer()
    chat_tokenizer = ChatTokenizer(tokenizer, PROTOCOL)
    policy = Policy.from_model(
        toy.make_model(1), chat_tokenizer.pad_id, Lora(lora, 2 * lora), cells=settings.cells
    )
    decoder = FastDecoder(policy.model)
    limits = RolloutLimits(settings.length, 10, 20, 4)
    rollout = Rollout(decoder, Environment(toy.make_retriever(), PROTOCOL), chat_tokenizer, limits)
    given = {"reward": brevity, "refresh": decoder.refresh} | more
    return Training(policy, rollout, settings, out, toy.make_tasks(), **given)


def weights(training):
    return {name: p.detach().clone() for name, p in training.policy.trainable_parameters().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)
