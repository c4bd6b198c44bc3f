"""Reinforcement learning of the Graph-R1 agent on a knowledge base; needs the extra `train`."""
